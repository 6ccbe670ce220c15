//! Expressions that the server computes from the document that it changes.

use mongodb::bson::{Bson, Decimal128, Document, doc};
use schemas::vocabulary::sql::physical::{Datum, Kind, Operator, Table, Term, Test};

use super::values::{bson, value, word};

/// What an update does: plain values, or a pipeline that reads the document.
pub fn update(
    set: &[(usize, Term)],
    table: &Table,
    parameters: &[Datum],
) -> Result<mongodb::options::UpdateModifications, String> {
    let name = |column: usize| table.columns[column].name.clone();
    if set.iter().all(|(_, term)| term.is_fixed()) {
        let fields =
            set.iter().map(|(column, term)| Ok((name(*column), value(term, table.columns[*column].kind, parameters)?)));
        let fields = fields.collect::<Result<Document, String>>()?;
        return Ok(doc! { "$set": fields }.into());
    }
    let fields = set.iter().map(|(column, term)| {
        let kind = table.columns[*column].kind;
        let computed = match term.is_fixed() {
            true => literal(value(term, kind, parameters)?),
            false => in_kind(expression(term, table, parameters)?, kind),
        };
        Ok((name(*column), computed))
    });
    let fields = fields.collect::<Result<Document, String>>()?;
    // One stage, so that every expression sees the document as it was.
    Ok(vec![doc! { "$set": fields }].into())
}

fn literal(value: Bson) -> Bson {
    Bson::Document(doc! { "$literal": value })
}

/// A number in the type of its column.
fn in_kind(computed: Bson, kind: Kind) -> Bson {
    match kind {
        Kind::Integer => doc! { "$toLong": computed }.into(),
        Kind::Decimal => doc! { "$toDecimal": computed }.into(),
        Kind::Float | Kind::Float32 => doc! { "$toDouble": computed }.into(),
        Kind::Text | Kind::Bytes | Kind::Timestamp | Kind::Date => computed,
    }
}

fn expression(term: &Term, table: &Table, parameters: &[Datum]) -> Result<Bson, String> {
    if term.is_fixed() {
        return Ok(literal(bson(term.value(parameters)?)?));
    }
    let inner = |term: &Term| expression(term, table, parameters);
    Ok(match term {
        Term::Column(column) => Bson::String(format!("${}", table.columns[*column].name)),
        Term::Arithmetic(operator, left, right) => {
            let word = match operator {
                Operator::Add => "$add",
                Operator::Subtract => "$subtract",
                Operator::Multiply => "$multiply",
            };
            Document::from_iter([(word.to_string(), Bson::Array(vec![inner(left)?, inner(right)?]))]).into()
        }
        Term::Round(term, digits) => rounded(inner(term)?, *digits),
        Term::Concat(terms) => {
            let texts = terms.iter().map(|term| Ok(doc! { "$toString": inner(term)? }.into()));
            doc! { "$concat": texts.collect::<Result<Vec<Bson>, String>>()? }.into()
        }
        Term::Substring(term, from, length) => {
            let from = i64::from(*from) - 1;
            doc! { "$substrCP": [doc! { "$toString": inner(term)? }, from, i64::from(*length)] }.into()
        }
        Term::Case(tests, otherwise) => {
            let branch = |(test, then): &(Test, Term)| {
                Ok(doc! { "case": self::test(test, table, parameters)?, "then": inner(then)? }.into())
            };
            let branches = tests.iter().map(branch).collect::<Result<Vec<Bson>, String>>()?;
            doc! { "$switch": { "branches": branches, "default": inner(otherwise)? } }.into()
        }
        // Both are fixed.
        Term::Parameter(_) | Term::Constant(_) => Bson::Null,
    })
}

/// A number with so many digits after its point, a half away from zero as in SQL: the server's own rounding takes a half
/// to the even digit.
pub fn rounded(number: Bson, digits: u32) -> Bson {
    let half = format!("0.{}5", "0".repeat(digits as usize));
    // A number of zeros and a five is one that the type has.
    let half = half.parse::<Decimal128>().map_or(Bson::Null, Bson::Decimal128);
    let away = doc! { "$cond": [{ "$lt": ["$$number", 0] }, { "$subtract": ["$$number", &half] }, { "$add": ["$$number", &half] }] };
    doc! { "$let": { "vars": { "number": number }, "in": { "$trunc": [away, i64::from(digits)] } } }.into()
}

/// A comparison. NULL, which is less than any value here, passes none.
fn test(test: &Test, table: &Table, parameters: &[Datum]) -> Result<Document, String> {
    let left = expression(&test.left, table, parameters)?;
    let right = expression(&test.right, table, parameters)?;
    let compared =
        Document::from_iter([(word(test.relation).to_string(), Bson::Array(vec![left.clone(), right.clone()]))]);
    Ok(doc! { "$and": [{ "$gt": [left, Bson::Null] }, { "$gt": [right, Bson::Null] }, compared] })
}
