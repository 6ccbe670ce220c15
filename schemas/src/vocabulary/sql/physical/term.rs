//! Expressions of statements, by the places of their columns and parameters.

/// A value that a statement writes out.
#[derive(Debug, Clone, PartialEq)]
pub enum Constant {
    /// NULL.
    Null,
    /// A whole number.
    Integer(i64),
    /// The digits of another number.
    Decimal(String),
    /// A text.
    Text(String),
}

/// What arithmetic does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// A sum.
    Add,
    /// A difference.
    Subtract,
    /// A product.
    Multiply,
}

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Term {
    /// A parameter, from 0.
    Parameter(usize),
    /// A value.
    Constant(Constant),
    /// A column of the row.
    Column(usize),
    /// Arithmetic on two expressions.
    Arithmetic(Operator, Box<Term>, Box<Term>),
    /// A number with so many digits after its point.
    Round(Box<Term>, u32),
    /// Texts, one after the other.
    Concat(Vec<Term>),
    /// Of a text the characters from one on, which counts from 1, and how many of them.
    Substring(Box<Term>, u32, u32),
    /// The expression of the first test that holds, or else the last one.
    Case(Vec<(Test, Term)>, Box<Term>),
}

/// A comparison of two expressions, which NULL does not pass.
#[derive(Debug, Clone, PartialEq)]
pub struct Test {
    /// What is compared.
    pub left: Term,
    /// How.
    pub relation: super::Relation,
    /// With what.
    pub right: Term,
}

impl Term {
    /// Calls `each` with the columns that it reads.
    pub fn columns(&self, each: &mut impl FnMut(usize)) {
        match self {
            Term::Column(column) => each(*column),
            Term::Parameter(_) | Term::Constant(_) => {}
            Term::Arithmetic(_, left, right) => {
                left.columns(each);
                right.columns(each);
            }
            Term::Round(term, _) | Term::Substring(term, ..) => term.columns(each),
            Term::Concat(terms) => terms.iter().for_each(|term| term.columns(each)),
            Term::Case(tests, otherwise) => {
                for (test, term) in tests {
                    test.left.columns(each);
                    test.right.columns(each);
                    term.columns(each);
                }
                otherwise.columns(each);
            }
        }
    }

    /// Whether it reads no column, so that its value is known before a row is.
    pub fn is_fixed(&self) -> bool {
        let mut reads = false;
        self.columns(&mut |_| reads = true);
        !reads
    }
}
