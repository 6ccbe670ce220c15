//! The tables and secondary indexes of each design.

use super::super::Dialect;
use super::design::{Counts, Design, Friendship, Images, Indexes};

/// The value of `status` while an invitation waits (one row a relation).
pub const PENDING: i64 = 1;

/// The value of `status` once it has been accepted.
pub const CONFIRMED: i64 = 2;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Integer,
    Text,
    Bytes,
}

/// A table.
#[derive(Debug, Clone)]
pub struct TableLayout {
    /// Its name.
    pub name: &'static str,
    columns: Vec<(&'static str, Type)>,
    /// The primary key.
    key: &'static [&'static str],
    changes: Changes,
}

/// Temporary tables that list what a replay has touched: pairs of members, members, comments. All
/// columns are ids and part of the key.
pub const TOUCHED: [(&str, &[&str]); 3] =
    [("touched_pairs", &["a", "b"]), ("touched_members", &["a"]), ("touched_comments", &["a"])];

/// What the actions do to the rows of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Changes {
    /// Nothing.
    Nothing,
    /// They change these columns.
    Columns(&'static [&'static str]),
    /// They add, remove and change rows.
    Rows,
}

/// A secondary index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Index {
    name: &'static str,
    table: &'static str,
    columns: &'static str,
}

impl TableLayout {
    fn new(
        name: &'static str,
        columns: &[(&'static str, Type)],
        key: &'static [&'static str],
        changes: Changes,
    ) -> TableLayout {
        TableLayout { name, columns: columns.to_vec(), key, changes }
    }

    /// Statements, in MySQL's dialect, that restore the touched rows of this table in database
    /// `to` from database `from`. The names are quoted already. The tables of [`TOUCHED`] say
    /// what is touched.
    pub fn restoration(&self, to: &str, from: &str) -> Vec<String> {
        let name = self.name;
        match self.changes {
            Changes::Nothing => vec![],
            Changes::Columns(columns) => {
                let set: Vec<String> = columns.iter().map(|column| format!("t.{column} = s.{column}")).collect();
                let (set, key) = (set.join(", "), self.key[0]);
                vec![format!(
                    "UPDATE touched_members x JOIN {from}.{name} s ON s.{key} = x.a JOIN {to}.{name} t \
                     ON t.{key} = x.a SET {set}"
                )]
            }
            Changes::Rows => {
                let touched = if self.key.len() == 2 { "touched_pairs" } else { "touched_comments" };
                let on = |row: &str| {
                    let same = self.key.iter().zip(["a", "b"]).map(|(key, column)| format!("{row}.{key} = x.{column}"));
                    same.collect::<Vec<_>>().join(" AND ")
                };
                vec![
                    format!("DELETE t FROM {touched} x JOIN {to}.{name} t ON {}", on("t")),
                    format!("INSERT INTO {to}.{name} SELECT s.* FROM {touched} x JOIN {from}.{name} s ON {}", on("s")),
                ]
            }
        }
    }

    /// The statement that creates it. No column may be null.
    pub fn creation(&self, dialect: &Dialect) -> String {
        let mut text = format!("CREATE TABLE {} (", self.name);
        for (name, kind) in &self.columns {
            let kind = match kind {
                Type::Integer => dialect.integer,
                Type::Text => dialect.text,
                Type::Bytes => dialect.bytes,
            };
            text += &format!("{name} {kind} NOT NULL, ");
        }
        // Relations have keys of two columns, and hardly any other columns.
        let end = if self.key.len() > 1 { dialect.narrow_table } else { "" };
        text + &format!("PRIMARY KEY ({})) {end}", self.key.join(", "))
    }
}

impl Index {
    /// The statement that creates it.
    pub fn creation(&self) -> String {
        format!("CREATE INDEX {} ON {} ({})", self.name, self.table, self.columns)
    }
}

/// The tables of a design.
///
/// Small columns that are read often come before thumbnail and image. So a store that keeps the
/// end of a long row elsewhere reads the beginning without it.
pub fn tables(design: &Design) -> Vec<TableLayout> {
    use Type::{Bytes, Integer, Text};
    let mut members = vec![("member", Integer), ("attributes", Text)];
    if design.counts == Counts::Stored {
        members.extend([("friend_count", Integer), ("pending_count", Integer), ("resource_count", Integer)]);
    }
    if design.images != Images::None {
        members.push(("thumbnail", Bytes));
    }
    if design.images == Images::Inline {
        members.push(("image", Bytes));
    }
    let of_members = match design.counts {
        Counts::Computed => Changes::Nothing,
        // No action adds a resource.
        Counts::Stored => Changes::Columns(&["friend_count", "pending_count"]),
    };
    let mut tables = vec![TableLayout::new("members", &members, &["member"], of_members)];
    if design.images == Images::Table {
        tables.push(TableLayout::new(
            "images",
            &[("member", Integer), ("image", Bytes)],
            &["member"],
            Changes::Nothing,
        ));
    }
    match design.friendship {
        Friendship::TwoRow => tables.extend([
            TableLayout::new(
                "friendships",
                &[("member", Integer), ("friend", Integer)],
                &["member", "friend"],
                Changes::Rows,
            ),
            TableLayout::new(
                "invitations",
                &[("invitee", Integer), ("inviter", Integer)],
                &["invitee", "inviter"],
                Changes::Rows,
            ),
        ]),
        Friendship::OneRow => tables.push(TableLayout::new(
            "friendships",
            &[("inviter", Integer), ("invitee", Integer), ("status", Integer)],
            &["inviter", "invitee"],
            Changes::Rows,
        )),
    }
    tables.extend([
        TableLayout::new(
            "resources",
            &[("resource", Integer), ("owner", Integer), ("wall", Integer), ("body", Text)],
            &["resource"],
            Changes::Nothing,
        ),
        TableLayout::new(
            "comments",
            &[("comment", Integer), ("resource", Integer), ("author", Integer), ("body", Text)],
            &["comment"],
            Changes::Rows,
        ),
    ]);
    tables
}

/// The names of all tables that any design has.
pub fn every_name() -> impl Iterator<Item = &'static str> {
    Design::all().flat_map(|design| tables(&design).into_iter().map(|table| table.name))
}

/// The secondary indexes of a design, best built after the rows are inserted.
pub fn indexes(design: &Design) -> Vec<Index> {
    if design.indexes == Indexes::Off {
        return vec![];
    }
    let mut indexes = vec![
        Index { name: "resources_by_wall", table: "resources", columns: "wall, resource" },
        Index { name: "comments_by_resource", table: "comments", columns: "resource" },
    ];
    if design.friendship == Friendship::OneRow {
        // It answers queries for the invitee without reading the table.
        let columns = "invitee, status, inviter";
        indexes.push(Index { name: "friendships_by_invitee", table: "friendships", columns });
    }
    indexes
}
