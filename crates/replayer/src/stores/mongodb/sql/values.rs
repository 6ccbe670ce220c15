//! Values as BSON, and BSON as canonical texts.

use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, Decimal128, Document, RawBsonRef};
use schemas::vocabulary::sql::physical::{
    Condition, Datum, Kind, Match, Relation, Table, Term, convert, key_conditions,
};
use schemas::vocabulary::sql::{Rows, canonical};

/// A value as BSON.
pub fn bson(value: Datum) -> Result<Bson, String> {
    Ok(match value {
        Datum::Null => Bson::Null,
        Datum::Integer(number) => Bson::Int64(number),
        Datum::Float(number) => Bson::Double(number),
        Datum::Decimal(digits) => Bson::Decimal128(
            digits.parse::<Decimal128>().map_err(|_| format!("{digits} has more digits than MongoDB's 34"))?,
        ),
        Datum::Text(text) => Bson::String(text),
        Datum::Bytes(bytes) => Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes }),
    })
}

/// The value of a fixed expression, for a column of a kind.
pub fn value(term: &Term, kind: Kind, parameters: &[Datum]) -> Result<Bson, String> {
    bson(convert(term.value(parameters)?, kind)?)
}

/// Adds a value of a document to a row.
pub fn add(rows: &mut Rows, value: Option<RawBsonRef<'_>>, kind: Kind) -> Result<(), String> {
    match value {
        None | Some(RawBsonRef::Null) => rows.null(),
        Some(RawBsonRef::Int64(number)) => rows.value(|text| canonical::integer(number, text)),
        Some(RawBsonRef::Int32(number)) => rows.value(|text| canonical::integer(number.into(), text)),
        Some(RawBsonRef::Double(number)) if kind == Kind::Float32 => {
            rows.value(|text| canonical::float32(number as f32, text));
        }
        Some(RawBsonRef::Double(number)) => rows.value(|text| canonical::float(number, text)),
        Some(RawBsonRef::Decimal128(number)) => {
            let digits = plain(&number.to_string());
            rows.value(|text| canonical::decimal(&digits, text));
        }
        Some(RawBsonRef::String(content)) => rows.value(|text| canonical::string(content, text)),
        Some(RawBsonRef::Binary(binary)) => rows.value(|text| canonical::bytes(binary.bytes, text)),
        Some(other) => return Err(format!("unexpected reply: a value of type {:?}", other.element_type())),
    }
    Ok(())
}

/// A decimal number without an exponent.
fn plain(text: &str) -> String {
    let Some((digits, exponent)) = text.split_once(['E', 'e']) else { return text.to_string() };
    let Ok(exponent) = exponent.parse::<i32>() else { return text.to_string() };
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    match whole.len() as i32 + exponent {
        point if point <= 0 => format!("{sign}0.{}{all}", "0".repeat(point.unsigned_abs() as usize)),
        point if point as usize >= all.len() => format!("{sign}{all:0<width$}", width = point as usize),
        point => format!("{sign}{}.{}", &all[..point as usize], &all[point as usize..]),
    }
}

/// The id of a row, whose key has these values.
pub fn id(table: &Table, mut values: impl FnMut(usize) -> Result<Bson, String>) -> Result<Option<Bson>, String> {
    let mut one = |column: &usize| match values(*column)? {
        Bson::Null => Err(format!("{} is NULL, and is of the primary key", table.columns[*column].name)),
        value => Ok(value),
    };
    match &table.key[..] {
        [] => Ok(None),
        [column] => one(column).map(Some),
        columns => {
            let fields = columns.iter().map(|column| Ok((table.columns[*column].name.clone(), one(column)?)));
            fields.collect::<Result<Document, String>>().map(|id| Some(Bson::Document(id)))
        }
    }
}

/// Which documents fulfil conditions; None if no document can, since a value is NULL.
pub fn filter(conditions: &[Condition], table: &Table, parameters: &[Datum]) -> Result<Option<Document>, String> {
    let mut all: Vec<Document> = Vec::with_capacity(conditions.len());
    let mut is_in_id = vec![false; conditions.len()];
    if let Some(terms) = key_conditions(conditions, table) {
        let of_key = |column: usize| {
            let term = table.key.iter().position(|own| *own == column).map(|at| terms[at]);
            term.map_or(Ok(Bson::Null), |term| compared(term, table.columns[column].kind, parameters))
        };
        // A comparison with NULL holds for no row.
        let mut has_null = false;
        for column in &table.key {
            has_null |= of_key(*column)? == Bson::Null;
        }
        if has_null {
            return Ok(None);
        }
        if let Some(id) = id(table, of_key)? {
            all.push(Document::from_iter([("_id".to_string(), id)]));
        }
        for (condition, is_in_id) in conditions.iter().zip(&mut is_in_id) {
            *is_in_id = matches!(&condition.is, Match::Is(Relation::Equal, term) if terms.contains(&term))
                && table.key.contains(&condition.column);
        }
    }
    for (condition, _) in conditions.iter().zip(is_in_id).filter(|(_, is_in_id)| !is_in_id) {
        let column = &table.columns[condition.column];
        let test = match &condition.is {
            Match::Null(is_null) => {
                Document::from_iter([(if *is_null { "$eq" } else { "$ne" }.to_string(), Bson::Null)])
            }
            Match::In(terms) => {
                let mut values = Vec::with_capacity(terms.len());
                for term in terms {
                    values.push(compared(term, column.kind, parameters)?);
                }
                values.retain(|value| *value != Bson::Null);
                Document::from_iter([("$in".to_string(), Bson::Array(values))])
            }
            Match::Is(relation, term) => match compared(term, column.kind, parameters)? {
                Bson::Null => return Ok(None),
                value if *relation == Relation::NotEqual => {
                    Document::from_iter([("$nin".to_string(), Bson::Array(vec![value, Bson::Null]))])
                }
                value => Document::from_iter([(word(*relation).to_string(), value)]),
            },
        };
        all.push(Document::from_iter([(column.name.clone(), Bson::Document(test))]));
    }
    Ok(Some(match all.len() {
        0 => Document::new(),
        1 => all.remove(0),
        _ => Document::from_iter([("$and".to_string(), Bson::Array(all.into_iter().map(Bson::Document).collect()))]),
    }))
}

/// A value to compare with a column. A number keeps its digits, which the column may not have.
fn compared(term: &Term, kind: Kind, parameters: &[Datum]) -> Result<Bson, String> {
    match (term.value(parameters)?, kind) {
        (number @ (Datum::Integer(_) | Datum::Decimal(_) | Datum::Float(_)), Kind::Integer | Kind::Decimal) => {
            bson(number)
        }
        (value, kind) => bson(convert(value, kind)?),
    }
}

/// The operator of a comparison.
pub fn word(relation: Relation) -> &'static str {
    match relation {
        Relation::Equal => "$eq",
        Relation::NotEqual => "$ne",
        Relation::Less => "$lt",
        Relation::LessOrEqual => "$lte",
        Relation::Greater => "$gt",
        Relation::GreaterOrEqual => "$gte",
    }
}

#[cfg(test)]
mod tests {
    use mongodb::bson::doc;
    use schemas::vocabulary::sql::physical::Tables;
    use schemas::vocabulary::sql::text::Dialect;

    use super::*;

    #[test]
    fn decimal_numbers_lose_their_exponent() {
        let check = |text: &str, expect: &str| assert_eq!(plain(text), expect);
        check("12.50", "12.50");
        check("1E+3", "1000");
        check("-1.25E+1", "-12.5");
        check("5E-7", "0.0000005");
        check("1.5E-2", "0.015");
    }

    #[test]
    fn conditions_find_documents_by_their_id_and_never_by_null() {
        let schema = "CREATE TABLE a (x INT, y INT, z VARCHAR(9), PRIMARY KEY (x, y))";
        let table = Tables::read(schema, Dialect::Logical).unwrap().0.remove(0);
        let is = |column, relation, at| Condition { column, is: Match::Is(relation, Term::Parameter(at)) };
        let parameters = [Datum::Integer(1), Datum::Integer(2), Datum::Text("t".into()), Datum::Null];
        let check = |conditions: &[Condition], expect: Option<Document>| {
            assert_eq!(filter(conditions, &table, &parameters).unwrap(), expect);
        };
        let [x, y] = [is(0, Relation::Equal, 0), is(1, Relation::Equal, 1)];
        check(&[y.clone(), x.clone()], Some(doc! { "_id": { "x": 1_i64, "y": 2_i64 } }));
        let more = doc! { "$and": [{ "_id": { "x": 1_i64, "y": 2_i64 } }, { "z": { "$gt": "t" } }] };
        check(&[x.clone(), y, is(2, Relation::Greater, 2)], Some(more));
        check(std::slice::from_ref(&x), Some(doc! { "x": { "$eq": 1_i64 } }));
        check(&[x, is(1, Relation::Equal, 3)], None);
        check(&[is(2, Relation::NotEqual, 2)], Some(doc! { "z": { "$nin": ["t", Bson::Null] } }));
        let some = Condition { column: 2, is: Match::In(vec![Term::Parameter(3), Term::Parameter(2)]) };
        check(&[some], Some(doc! { "z": { "$in": ["t"] } }));
        check(&[], Some(doc! {}));
    }
}
