//! Values of SQLite as canonical texts. The type is that of the value, whatever the column declares.

use schemas::vocabulary::sql::{Rows, canonical};
use sqlx::sqlite::SqliteRow;
use sqlx::{Error, Row, TypeInfo, ValueRef};

use crate::stores::relational::engine::Canonical;

impl Canonical for SqliteRow {
    fn add_to(&self, rows: &mut Rows) -> Result<(), Error> {
        for column in 0..self.len() {
            let value = self.try_get_raw(column)?;
            if value.is_null() {
                rows.null();
                continue;
            }
            match value.type_info().name() {
                "INTEGER" | "BOOLEAN" => {
                    let number: i64 = self.try_get_unchecked(column)?;
                    rows.value(|text| canonical::integer(number, text));
                }
                "REAL" => {
                    let number: f64 = self.try_get_unchecked(column)?;
                    rows.value(|text| canonical::float(number, text));
                }
                "BLOB" => {
                    let bytes: &[u8] = self.try_get_unchecked(column)?;
                    rows.value(|text| canonical::bytes(bytes, text));
                }
                _ => {
                    let content: &str = self.try_get_unchecked(column)?;
                    rows.value(|text| canonical::string(content, text));
                }
            }
        }
        Ok(())
    }
}
