//! What an operation saw. Its rows can be kept as bytes, for a cache in front of a store or a
//! test that compares every byte.

/// What an operation saw; reused from operation to operation.
#[derive(Debug, Default)]
pub struct Answer {
    /// The values that [`Operation::observations`](schemas::social::Operation::observations)
    /// asks for, in its order.
    pub values: Vec<i64>,
    /// Bytes of text and images that came with them.
    pub payload_bytes: u64,
    /// How often the operation was tried.
    pub attempts: u16,
    /// How long it waited for a connection.
    pub pool_wait_ns: i64,
    /// The rows themselves, if a caller asked for them with [`Answer::keep_rows`].
    kept: Option<KeptRows>,
}

impl Answer {
    /// Forgets what the last operation saw.
    pub fn clear(&mut self) {
        self.attempts = 1;
        self.pool_wait_ns = 0;
        self.kept = None;
        self.clear_rows();
    }

    /// Forgets the rows seen so far, because the operation is tried again.
    pub fn clear_rows(&mut self) {
        self.values.clear();
        self.payload_bytes = 0;
        if let Some(rows) = &mut self.kept {
            rows.0.clear();
        }
    }

    /// From now on the rows of the operation are kept as bytes too.
    pub fn keep_rows(&mut self) {
        self.kept.get_or_insert_default();
    }

    /// The kept rows; none if no caller asked for them.
    pub fn rows(&self) -> Option<&KeptRows> {
        self.kept.as_ref()
    }

    /// Adds a row: the values observed in it, its text, its image (empty if none was sent).
    pub fn take_in(&mut self, values: &[i64], text: &str, image: &[u8]) {
        self.values.extend_from_slice(values);
        self.payload_bytes += (text.len() + image.len()) as u64;
        if let Some(rows) = &mut self.kept {
            rows.push(values, text, image);
        }
    }
}

/// The rows of an answer as bytes. A row is the number of its values (1 byte), the values (8
/// bytes each), the length of the text (4 bytes), the text, the length of the
/// image (4 bytes), the image; all little-endian.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptRows(Vec<u8>);

/// The most values that an action observes in a row: View Profile has three counts.
const VALUES_MAX: usize = 3;

/// A row of [`KeptRows`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row<'a> {
    values: [i64; VALUES_MAX],
    count: usize,
    /// Its text.
    pub text: &'a str,
    /// Its image; empty where there is none.
    pub image: &'a [u8],
}

/// Bytes that are not rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("these bytes are not the rows of an answer")]
pub struct NotRows;

impl KeptRows {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn push(&mut self, values: &[i64], text: &str, image: &[u8]) {
        debug_assert!(values.len() <= VALUES_MAX);
        // No payload is near 4 GiB.
        self.0.push(values.len() as u8);
        values.iter().for_each(|value| self.0.extend_from_slice(&value.to_le_bytes()));
        for part in [text.as_bytes(), image] {
            self.0.extend_from_slice(&(part.len() as u32).to_le_bytes());
            self.0.extend_from_slice(part);
        }
    }

    /// The rows, in order.
    pub fn iter(&self) -> impl Iterator<Item = Result<Row<'_>, NotRows>> {
        let mut rest = self.0.as_slice();
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let row = Row::split_off(&mut rest);
            if row.is_err() {
                rest = &[];
            }
            Some(row)
        })
    }
}

/// Adds all rows that the bytes contain to an answer, as if they had come from the store.
pub fn replay(bytes: &[u8], answer: &mut Answer) -> Result<(), NotRows> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let row = Row::split_off(&mut rest)?;
        answer.take_in(row.values(), row.text, row.image);
    }
    Ok(())
}

impl<'a> Row<'a> {
    /// The values observed in it.
    pub fn values(&self) -> &[i64] {
        &self.values[..self.count]
    }

    fn split_off(rest: &mut &'a [u8]) -> Result<Row<'a>, NotRows> {
        let count = take(rest, 1)?[0] as usize;
        let mut values = [0; VALUES_MAX];
        for value in values.get_mut(..count).ok_or(NotRows)? {
            *value = i64::from_le_bytes(take(rest, 8)?.try_into().map_err(|_| NotRows)?);
        }
        let text = std::str::from_utf8(part(rest)?).map_err(|_| NotRows)?;
        Ok(Row { values, count, text, image: part(rest)? })
    }
}

fn part<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], NotRows> {
    let length = take(rest, 4)?.try_into().map_err(|_| NotRows)?;
    take(rest, u32::from_le_bytes(length) as usize)
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], NotRows> {
    let (taken, left) = rest.split_at_checked(length).ok_or(NotRows)?;
    *rest = left;
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_as_they_went_in() {
        let mut answer = Answer::default();
        answer.clear();
        answer.keep_rows();
        answer.take_in(&[7, -1, i64::MAX], "text", &[1, 2, 3]);
        answer.take_in(&[], "", &[]);
        let rows = answer.rows().unwrap();
        let mut again = Answer::default();
        replay(rows.as_bytes(), &mut again).unwrap();
        assert_eq!((&again.values, again.payload_bytes), (&answer.values, answer.payload_bytes));
        let rows: Vec<Row> = rows.iter().collect::<Result<_, _>>().unwrap();
        assert_eq!(rows[0], Row { values: [7, -1, i64::MAX], count: 3, text: "text", image: &[1, 2, 3] });
        assert_eq!(rows[1], Row { values: [0; 3], count: 0, text: "", image: &[] });
    }

    /// A cache may return any bytes.
    #[test]
    fn bytes_that_are_no_rows_are_refused() {
        let mut answer = Answer::default();
        answer.keep_rows();
        answer.take_in(&[1], "ab", &[9]);
        let bytes = answer.rows().unwrap().0.clone();
        for end in 1..bytes.len() {
            assert_eq!(replay(&bytes[..end], &mut answer), Err(NotRows), "{end}");
        }
        assert_eq!(replay(&[0, 1, 0, 0, 0, 0xff, 0, 0, 0, 0], &mut answer), Err(NotRows));
        assert_eq!(replay(&[200], &mut answer), Err(NotRows));
    }
}
