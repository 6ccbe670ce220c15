//! The eleven actions in SQL, as a function of the design.
//!
//! Every read is one statement, so that it sees one state. A write of several statements is one
//! transaction. Statements are made once for the connections of a worker: operations share their text.

use schemas::social::{Action, Operation};
use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

use super::super::Dialect;
use super::super::engine::Parameter;
use super::design::{Counts, Design, Friendship, Images};
use super::tables::{CONFIRMED, PENDING};

/// What a statement's parameter stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argument {
    /// The socialite.
    Me,
    /// The operation's target.
    Target,
    /// The comment's id.
    Comment,
    /// The comment's text.
    Body,
    /// The K of View Top-K Resources.
    TopK,
}

/// The values of the parameters of an operation's statements.
#[derive(Debug, Clone)]
pub struct Arguments {
    /// The socialite.
    pub me: i64,
    /// The operation's target.
    pub target: i64,
    /// The comment's id.
    pub comment: i64,
    /// The text of a comment that is posted, else empty.
    pub body: String,
    /// The K of View Top-K Resources.
    pub top_k: i64,
}

impl Arguments {
    fn of(&self, argument: Argument) -> Parameter<'_> {
        match argument {
            Argument::Me => Parameter::Integer(self.me),
            Argument::Target => Parameter::Integer(self.target),
            Argument::Comment => Parameter::Integer(self.comment),
            Argument::Body => Parameter::Text(&self.body),
            Argument::TopK => Parameter::Integer(self.top_k),
        }
    }
}

/// The most parameters of a statement: View Profile counts in several places.
const PARAMETERS_MAX: usize = 8;

impl Argument {
    const ALL: [(&str, Argument); 5] = [
        ("me", Argument::Me),
        ("target", Argument::Target),
        ("comment", Argument::Comment),
        ("body", Argument::Body),
        ("top_k", Argument::TopK),
    ];
}

/// A statement and what is bound to its parameters, in order.
#[derive(Debug, Clone)]
pub struct Statement {
    sql: SqlStr,
    arguments: Vec<Argument>,
}

impl Statement {
    /// From a text with `:me`, `:target` and so on for the parameters. A parameter that is there
    /// twice is bound twice, since not every store can number parameters.
    fn new(template: &str, dialect: &Dialect) -> Statement {
        let mut pieces = template.split(':');
        let mut sql = pieces.next().unwrap_or_default().to_string();
        let mut arguments = Vec::new();
        for piece in pieces {
            let end = piece.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(piece.len());
            let (name, rest) = piece.split_at(end);
            let Some((_, argument)) = Argument::ALL.iter().find(|(known, _)| *known == name) else {
                unreachable!("the templates of this module name known arguments only, not {name:?}");
            };
            arguments.push(*argument);
            sql += &(dialect.parameter)(arguments.len());
            sql += rest;
        }
        assert!(arguments.len() <= PARAMETERS_MAX, "{sql} has too many parameters");
        // The text contains nothing that a user typed: designs choose between pieces of this
        // module. It is shared, so that each use costs a count.
        let sql = AssertSqlSafe(std::sync::Arc::<str>::from(sql)).into_sql_str();
        Statement { sql, arguments }
    }

    /// Its text, shared.
    pub fn sql(&self) -> SqlStr {
        self.sql.clone()
    }

    /// What is bound, in the order of the parameters.
    pub fn arguments(&self) -> &[Argument] {
        &self.arguments
    }

    /// The values to bind, in the order of the parameters.
    pub fn bind<'a>(&self, arguments: &'a Arguments) -> Bound<'a> {
        let mut parameters = [Parameter::Integer(0); PARAMETERS_MAX];
        for (parameter, argument) in parameters.iter_mut().zip(&self.arguments) {
            *parameter = arguments.of(*argument);
        }
        Bound { parameters, count: self.arguments.len() }
    }
}

/// The values of a statement's parameters.
#[derive(Debug, Clone, Copy)]
pub struct Bound<'a> {
    parameters: [Parameter<'a>; PARAMETERS_MAX],
    count: usize,
}

impl<'a> Bound<'a> {
    /// The values, in order.
    pub fn parameters(&self) -> &[Parameter<'a>] {
        &self.parameters[..self.count]
    }
}

/// How many rows a read expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedRows {
    /// Exactly one.
    One,
    /// Any number.
    Any,
}

/// A read. Its columns are the observed values, then a text, then perhaps an image.
#[derive(Debug, Clone)]
pub struct Read {
    /// The statement.
    pub statement: Statement,
    /// How many rows it expects.
    pub rows: ExpectedRows,
    /// How many columns are observed; the text comes next.
    pub values: usize,
    /// The column of the image or thumbnail, if there is one.
    pub image_column: Option<usize>,
}

/// A statement of a write, and how many rows it changes when the data is as the
/// trace left it.
#[derive(Debug, Clone)]
pub struct WriteStatement {
    /// The statement.
    pub statement: Statement,
    /// Rows that it changes.
    pub rows: u64,
}

/// What an operation does.
#[derive(Debug, Clone, Copy)]
pub enum Call<'a> {
    /// It reads.
    Read(&'a Read),
    /// It writes: the statements are one transaction.
    Write(&'a [WriteStatement]),
}

/// The statements of a design.
#[derive(Debug, Clone)]
pub struct Statements {
    view_profile: Read,
    view_own_profile: Read,
    list_friends: Read,
    view_friend_requests: Read,
    view_top_k_resources: Read,
    view_comments: Read,
    invite_friend: Vec<WriteStatement>,
    accept_friend_request: Vec<WriteStatement>,
    reject_friend_request: Vec<WriteStatement>,
    thaw_friendship: Vec<WriteStatement>,
    post_comment: Vec<WriteStatement>,
    delete_comment: Vec<WriteStatement>,
}

impl Statements {
    /// The statements of a design, in a store's dialect.
    pub fn new(design: &Design, dialect: &Dialect) -> Statements {
        let maker = Maker { design, dialect };
        let write = |template: &str, rows| maker.write(template, rows);
        let mut statements = Statements {
            view_profile: maker.view_profile(&[FRIENDS, RESOURCES]),
            view_own_profile: maker.view_profile(&[FRIENDS, RESOURCES, PENDINGS]),
            list_friends: maker.list_friends(),
            view_friend_requests: maker.view_friend_requests(),
            view_top_k_resources: maker.read_texts(
                "SELECT resource, body FROM resources WHERE wall = :target ORDER BY resource DESC LIMIT :top_k",
            ),
            view_comments: maker.read_texts("SELECT comment, body, author FROM comments WHERE resource = :target"),
            invite_friend: maker.invite_friend(),
            accept_friend_request: maker.accept_friend_request(),
            reject_friend_request: maker.reject_friend_request(),
            thaw_friendship: maker.thaw_friendship(),
            post_comment: vec![write(
                "INSERT INTO comments (comment, resource, author, body) VALUES (:comment, :target, :me, :body)",
                1,
            )],
            delete_comment: vec![write("DELETE FROM comments WHERE comment = :comment AND resource = :target", 1)],
        };
        if design.counts == Counts::Stored {
            let add =
                |set: &str, whose: &str, rows| write(&format!("UPDATE members SET {set} WHERE member {whose}"), rows);
            let (me, target, both) = ("= :me", "= :target", "IN (:me, :target)");
            statements.invite_friend.push(add("pending_count = pending_count + 1", target, 1));
            statements.reject_friend_request.push(add("pending_count = pending_count - 1", me, 1));
            statements.thaw_friendship.push(add("friend_count = friend_count - 1", both, 2));
            // One statement for the two, since each costs a round trip.
            let accepted = "friend_count = friend_count + 1, \
                            pending_count = pending_count - CASE WHEN member = :me THEN 1 ELSE 0 END";
            statements.accept_friend_request.push(add(accepted, both, 2));
        }
        statements
    }

    /// What an operation does.
    pub fn of(&self, operation: &Operation) -> Call<'_> {
        match operation.action {
            Action::ViewProfile if operation.socialite == operation.target => Call::Read(&self.view_own_profile),
            Action::ViewProfile => Call::Read(&self.view_profile),
            Action::ListFriends => Call::Read(&self.list_friends),
            Action::ViewFriendRequests => Call::Read(&self.view_friend_requests),
            Action::ViewTopKResources => Call::Read(&self.view_top_k_resources),
            Action::ViewComments => Call::Read(&self.view_comments),
            Action::InviteFriend => Call::Write(&self.invite_friend),
            Action::AcceptFriendRequest => Call::Write(&self.accept_friend_request),
            Action::RejectFriendRequest => Call::Write(&self.reject_friend_request),
            Action::ThawFriendship => Call::Write(&self.thaw_friendship),
            Action::PostComment => Call::Write(&self.post_comment),
            Action::DeleteComment => Call::Write(&self.delete_comment),
        }
    }

    /// Every statement, for tests of all of them.
    #[cfg(test)]
    pub fn each(&self) -> impl Iterator<Item = &Statement> {
        use Action::*;
        let all = Action::ALL.into_iter().flat_map(|action| {
            let others = [Operation { action, socialite: 1, target: 2, comment: None }];
            let own = (action == ViewProfile).then_some(Operation { action, socialite: 1, target: 1, comment: None });
            others.into_iter().chain(own)
        });
        all.flat_map(|operation| match self.of(&operation) {
            Call::Read(read) => vec![&read.statement],
            Call::Write(writes) => writes.iter().map(|write| &write.statement).collect(),
        })
    }
}

/// A count of View Profile.
#[derive(Clone, Copy)]
struct Count {
    /// Its column where counts are stored.
    stored: &'static str,
    two_row: &'static str,
    one_row: &'static str,
}

const FRIENDS: Count = Count {
    stored: "m.friend_count",
    two_row: "(SELECT count(*) FROM friendships WHERE member = :target)",
    one_row: "(SELECT count(*) FROM friendships WHERE inviter = :target AND status = {confirmed}) \
              + (SELECT count(*) FROM friendships WHERE invitee = :target AND status = {confirmed})",
};
const PENDINGS: Count = Count {
    stored: "m.pending_count",
    two_row: "(SELECT count(*) FROM invitations WHERE invitee = :target)",
    one_row: "(SELECT count(*) FROM friendships WHERE invitee = :target AND status = {pending})",
};
const RESOURCES: Count = Count {
    stored: "m.resource_count",
    two_row: "(SELECT count(*) FROM resources WHERE wall = :target)",
    one_row: "(SELECT count(*) FROM resources WHERE wall = :target)",
};

/// Makes the statements that depend on the design.
struct Maker<'a> {
    design: &'a Design,
    dialect: &'a Dialect,
}

impl Maker<'_> {
    fn statement(&self, template: &str) -> Statement {
        let template = template.replace("{pending}", &PENDING.to_string());
        Statement::new(&template.replace("{confirmed}", &CONFIRMED.to_string()), self.dialect)
    }

    fn write(&self, template: &str, rows: u64) -> WriteStatement {
        WriteStatement { statement: self.statement(template), rows }
    }

    /// Rows of an id and a text.
    fn read_texts(&self, template: &str) -> Read {
        Read { statement: self.statement(template), rows: ExpectedRows::Any, values: 1, image_column: None }
    }

    fn view_profile(&self, counts: &[Count]) -> Read {
        let columns: Vec<&str> = counts
            .iter()
            .map(|count| match (self.design.counts, self.design.friendship) {
                (Counts::Stored, _) => count.stored,
                (Counts::Computed, Friendship::TwoRow) => count.two_row,
                (Counts::Computed, Friendship::OneRow) => count.one_row,
            })
            .collect();
        let (image, from) = match self.design.images {
            Images::Inline => (", m.image", "members m"),
            Images::Table => (", i.image", "members m JOIN images i ON i.member = m.member"),
            Images::None => ("", "members m"),
        };
        let columns = columns.join(", ");
        let template = format!("SELECT {columns}, m.attributes{image} FROM {from} WHERE m.member = :target");
        let image_column = (self.design.images != Images::None).then_some(counts.len() + 1);
        Read { statement: self.statement(&template), rows: ExpectedRows::One, values: counts.len(), image_column }
    }

    /// The members that the rows of `relation` name in their column `who`.
    fn select_members(&self, relation: &str, who: &str, condition: &str) -> String {
        let thumbnail = if self.design.images == Images::None { "" } else { ", m.thumbnail" };
        format!(
            "SELECT m.member, m.attributes{thumbnail} FROM {relation} r JOIN members m ON m.member = r.{who} WHERE {condition}"
        )
    }

    fn read_members(&self, template: &str) -> Read {
        let image_column = (self.design.images != Images::None).then_some(2);
        Read { statement: self.statement(template), rows: ExpectedRows::Any, values: 1, image_column }
    }

    fn list_friends(&self) -> Read {
        self.read_members(&match self.design.friendship {
            Friendship::TwoRow => self.select_members("friendships", "friend", "r.member = :target"),
            Friendship::OneRow => {
                let invited =
                    self.select_members("friendships", "invitee", "r.inviter = :target AND r.status = {confirmed}");
                let invited_by =
                    self.select_members("friendships", "inviter", "r.invitee = :target AND r.status = {confirmed}");
                format!("{invited} UNION ALL {invited_by}")
            }
        })
    }

    fn view_friend_requests(&self) -> Read {
        self.read_members(&match self.design.friendship {
            Friendship::TwoRow => self.select_members("invitations", "inviter", "r.invitee = :me"),
            Friendship::OneRow => {
                self.select_members("friendships", "inviter", "r.invitee = :me AND r.status = {pending}")
            }
        })
    }

    fn invite_friend(&self) -> Vec<WriteStatement> {
        vec![match self.design.friendship {
            Friendship::TwoRow => self.write("INSERT INTO invitations (invitee, inviter) VALUES (:target, :me)", 1),
            Friendship::OneRow => {
                self.write("INSERT INTO friendships (inviter, invitee, status) VALUES (:me, :target, {pending})", 1)
            }
        }]
    }

    fn accept_friend_request(&self) -> Vec<WriteStatement> {
        match self.design.friendship {
            Friendship::TwoRow => vec![
                self.write("DELETE FROM invitations WHERE invitee = :me AND inviter = :target", 1),
                self.write("INSERT INTO friendships (member, friend) VALUES (:me, :target), (:target, :me)", 2),
            ],
            Friendship::OneRow => vec![self.write(
                "UPDATE friendships SET status = {confirmed} \
                 WHERE inviter = :target AND invitee = :me AND status = {pending}",
                1,
            )],
        }
    }

    fn reject_friend_request(&self) -> Vec<WriteStatement> {
        vec![match self.design.friendship {
            Friendship::TwoRow => self.write("DELETE FROM invitations WHERE invitee = :me AND inviter = :target", 1),
            Friendship::OneRow => self
                .write("DELETE FROM friendships WHERE inviter = :target AND invitee = :me AND status = {pending}", 1),
        }]
    }

    fn thaw_friendship(&self) -> Vec<WriteStatement> {
        vec![match self.design.friendship {
            Friendship::TwoRow => self.write(
                "DELETE FROM friendships \
                 WHERE (member = :me AND friend = :target) OR (member = :target AND friend = :me)",
                2,
            ),
            // Either of the two may have invited the other.
            Friendship::OneRow => self.write(
                "DELETE FROM friendships WHERE ((inviter = :me AND invitee = :target) \
                 OR (inviter = :target AND invitee = :me)) AND status = {confirmed}",
                1,
            ),
        }]
    }
}
