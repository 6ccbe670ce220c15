//! Queries for a store's state: how many rows there are, which facts they state, and whether data
//! that is kept twice agrees.

use schemas::workload::social::dataset::Table;

use super::design::{Counts, Design, Friendship, Images};
use super::tables::{CONFIRMED, PENDING};

/// A count of rows that a freshly loaded store must have.
#[derive(Debug, Clone)]
pub struct Tally {
    /// What is counted, in words.
    pub what: &'static str,
    /// The query.
    pub sql: String,
    /// The table of the data set that says how many there are.
    pub of: Table,
    /// Rows for each row of the data set's table.
    pub rows_each: u64,
}

/// What to count in a freshly loaded store.
pub fn tallies(design: &Design) -> Vec<Tally> {
    let tally =
        |what, rows: &str, of, rows_each| Tally { what, sql: format!("SELECT count(*) FROM {rows}"), of, rows_each };
    let mut tallies = vec![
        tally("table members", "members", Table::Members, 1),
        tally("table resources", "resources", Table::Resources, 1),
        tally("table comments", "comments", Table::Comments, 1),
    ];
    if design.images == Images::Table {
        tallies.push(tally("table images", "images", Table::Members, 1));
    }
    match design.friendship {
        Friendship::TwoRow => tallies.extend([
            tally("table friendships", "friendships", Table::Friendships, 2),
            tally("table invitations", "invitations", Table::Invitations, 1),
        ]),
        Friendship::OneRow => {
            let with = |status: i64| format!("friendships WHERE status = {status}");
            tallies.extend([
                tally("table friendships (confirmed)", &with(CONFIRMED), Table::Friendships, 1),
                tally("table friendships (pending)", &with(PENDING), Table::Invitations, 1),
            ]);
        }
    }
    tallies
}

/// Queries for all facts of a state digest.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Member, attributes, thumbnail, image; without the last two if images are not in the store.
    pub members: String,
    /// Two members, each pair once.
    pub friendships: String,
    /// Inviter, invitee.
    pub invitations: String,
    /// Resource, owner, wall, text.
    pub resources: &'static str,
    /// Comment, resource, author, text.
    pub comments: &'static str,
}

/// The queries for the facts of a design.
pub fn facts(design: &Design) -> Facts {
    let members = match design.images {
        Images::Inline => "SELECT member, attributes, thumbnail, image FROM members",
        Images::Table => {
            "SELECT m.member, m.attributes, m.thumbnail, i.image FROM members m JOIN images i ON i.member = m.member"
        }
        Images::None => "SELECT member, attributes FROM members",
    };
    let (friendships, invitations) = match design.friendship {
        Friendship::TwoRow => (
            "SELECT member, friend FROM friendships WHERE member < friend".to_string(),
            "SELECT inviter, invitee FROM invitations".to_string(),
        ),
        Friendship::OneRow => {
            let with = |status: i64| format!("SELECT inviter, invitee FROM friendships WHERE status = {status}");
            (with(CONFIRMED), with(PENDING))
        }
    };
    Facts {
        members: members.to_string(),
        friendships,
        invitations,
        resources: "SELECT resource, owner, wall, body FROM resources",
        comments: "SELECT comment, resource, author, body FROM comments",
    }
}

/// Data that is kept twice and must agree.
#[derive(Debug, Clone)]
pub struct Agreement {
    /// The query that counts where it does not agree.
    pub sql: String,
    /// What a disagreement means, in words that follow the number.
    pub broken: &'static str,
}

/// What must agree in a design.
pub fn agreements(design: &Design) -> Vec<Agreement> {
    let mut agreements = vec![match design.friendship {
        Friendship::TwoRow => Agreement {
            sql: "SELECT count(*) FROM friendships f WHERE NOT EXISTS \
                  (SELECT 1 FROM friendships g WHERE g.member = f.friend AND g.friend = f.member)"
                .to_string(),
            broken: "friendships are stored for only one of the two members",
        },
        Friendship::OneRow => Agreement {
            sql: format!(
                "SELECT count(*) FROM friendships f JOIN friendships g \
                 ON g.inviter = f.invitee AND g.invitee = f.inviter WHERE f.status = {CONFIRMED}"
            ),
            broken: "rows of friendships have a duplicate in the other direction",
        },
    }];
    if design.counts == Counts::Stored {
        let (friends, pending) = match design.friendship {
            Friendship::TwoRow => (
                "SELECT member, count(*) AS n FROM friendships GROUP BY member".to_string(),
                "SELECT invitee AS member, count(*) AS n FROM invitations GROUP BY invitee".to_string(),
            ),
            Friendship::OneRow => (
                format!(
                    "SELECT member, count(*) AS n FROM \
                     (SELECT inviter AS member FROM friendships WHERE status = {CONFIRMED} \
                     UNION ALL SELECT invitee FROM friendships WHERE status = {CONFIRMED}) ends GROUP BY member"
                ),
                format!(
                    "SELECT invitee AS member, count(*) AS n FROM friendships WHERE status = {PENDING} GROUP BY invitee"
                ),
            ),
        };
        let resources = "SELECT wall AS member, count(*) AS n FROM resources GROUP BY wall";
        // Grouped once instead of counted for each member: there may be no index.
        let stored = |column: &str, lists: &str, broken| Agreement {
            sql: format!(
                "SELECT count(*) FROM members m LEFT JOIN ({lists}) l ON l.member = m.member \
                 WHERE m.{column} <> coalesce(l.n, 0)"
            ),
            broken,
        };
        agreements.extend([
            stored("friend_count", &friends, "members have a wrong friend_count"),
            stored("pending_count", &pending, "members have a wrong pending_count"),
            stored("resource_count", resources, "members have a wrong resource_count"),
        ]);
    }
    agreements
}
