//! Splits SQL into its literals and its shape: the text around them, with one blank for each space and
//! comment. Statements that differ in their literals alone have one shape.

use std::ops::Range;

/// How SQL is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL.
    Postgres,
    /// MySQL and MariaDB.
    Mysql,
}

/// What a literal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole number of at most 64 bits.
    Integer,
    /// Another number.
    Decimal,
    /// A text in quotes. Its type follows from where it is.
    Quoted,
}

/// Stands for a literal in a shape; the letter of its kind follows.
pub const MARK: char = '\u{1}';

impl Kind {
    /// Its letter in a shape.
    pub const fn letter(self) -> char {
        match self {
            Kind::Integer => 'i',
            Kind::Decimal => 'd',
            Kind::Quoted => 'q',
        }
    }
}

/// A literal of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Literal {
    /// What it is.
    pub kind: Kind,
    /// Where it is in the text, with its sign.
    pub place: Range<usize>,
    /// Where it begins without its sign.
    pub unsigned: usize,
    /// Where its value is in [`Lexed::values`].
    pub value: Range<usize>,
}

/// A statement, split.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lexed {
    /// The text without literals and superfluous blanks.
    pub shape: String,
    /// Its literals, in order.
    pub literals: Vec<Literal>,
    /// The values of the literals.
    pub values: String,
    /// The greatest number of a parameter such as `$1`; 0 if there is none.
    pub parameters: u16,
}

impl Lexed {
    /// The value of a literal: a number with its sign, or the text that quotes stand for.
    pub fn value(&self, literal: &Literal) -> &str {
        &self.values[literal.value.clone()]
    }

    fn clear(&mut self) {
        self.shape.clear();
        self.literals.clear();
        self.values.clear();
        self.parameters = 0;
    }
}

/// Reads the statement that begins at `from`; returns where it ends, without its semicolon, and where the next one
/// begins. None if a quote or comment is not closed.
pub fn read(text: &str, from: usize, dialect: Dialect, lexed: &mut Lexed) -> Option<(usize, usize)> {
    lexed.clear();
    let mut lexer = Lexer { text, bytes: text.as_bytes(), at: from, dialect, lexed, last: Last::Start };
    while lexer.at < text.len() {
        if lexer.bytes[lexer.at] == b';' {
            let end = lexer.at;
            lexer.trim();
            return Some((end, end + 1));
        }
        lexer.step()?;
    }
    lexer.trim();
    Some((text.len(), text.len()))
}

/// What was read last, for the question whether a minus is a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    Start,
    /// After it comes a value, so a minus is a sign.
    Operator,
    /// A minus after it is a subtraction.
    Operand,
    /// A text in quotes, which goes on if another one follows after a line end.
    Quoted,
}

struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    dialect: Dialect,
    lexed: &'a mut Lexed,
    last: Last,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn is_mysql(&self) -> bool {
        self.dialect == Dialect::Mysql
    }

    /// Reads one token.
    fn step(&mut self) -> Option<()> {
        let byte = self.bytes[self.at];
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => {
                self.at += 1;
                self.blank();
            }
            b'-' if self.is_line_comment() => self.line_comment(),
            b'#' if self.is_mysql() => self.line_comment(),
            b'/' if self.peek(1) == b'*' => self.comment()?,
            b'\'' => self.quoted(self.at, b'\'', self.is_mysql())?,
            b'"' if self.is_mysql() => self.quoted(self.at, b'"', true)?,
            b'"' | b'`' => self.name(byte)?,
            b'$' if !self.is_mysql() => self.dollar()?,
            b'0'..=b'9' => self.number(self.at),
            b'.' if self.peek(1).is_ascii_digit() && self.last != Last::Operand => self.number(self.at),
            b'-' if self.is_sign() => {
                let from = self.at;
                self.at += 1;
                while self.peek(0) == b' ' {
                    self.at += 1;
                }
                self.number(from);
            }
            _ if byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80 => self.word()?,
            _ => {
                self.at += 1;
                self.lexed.shape.push(byte as char);
                self.last = if matches!(byte, b')' | b']') { Last::Operand } else { Last::Operator };
            }
        }
        Some(())
    }

    /// Whether a comment begins with `--`. MySQL wants a blank after it: `a--5` is a subtraction there.
    fn is_line_comment(&self) -> bool {
        let next = self.peek(2);
        self.peek(1) == b'-' && (!self.is_mysql() || next <= b' ')
    }

    /// Adds a blank to the shape, unless there is one.
    fn blank(&mut self) {
        if !self.lexed.shape.is_empty() && !self.lexed.shape.ends_with(' ') {
            self.lexed.shape.push(' ');
        }
    }

    fn trim(&mut self) {
        let length = self.lexed.shape.trim_end_matches(' ').len();
        self.lexed.shape.truncate(length);
    }

    fn line_comment(&mut self) {
        self.at += self.text[self.at..].find('\n').unwrap_or(self.text.len() - self.at);
        self.blank();
    }

    /// A comment in `/* */`. PostgreSQL's may hold others. A hint (`/*+`) and what MySQL executes (`/*!`)
    /// belong to the statement.
    fn comment(&mut self) -> Option<()> {
        let from = self.at;
        let is_kept = matches!(self.peek(2), b'+' | b'!');
        let mut depth = 0;
        loop {
            match (self.peek(0), self.peek(1)) {
                (b'/', b'*') if depth == 0 || !self.is_mysql() => {
                    depth += 1;
                    self.at += 2;
                }
                (b'*', b'/') => {
                    depth -= 1;
                    self.at += 2;
                }
                _ if self.at >= self.text.len() => return None,
                _ => self.at += 1,
            }
            if depth == 0 {
                break;
            }
        }
        if is_kept {
            self.lexed.shape.push_str(&self.text[from..self.at]);
        } else {
            self.blank();
        }
        Some(())
    }

    /// A name in quotes.
    fn name(&mut self, quote: u8) -> Option<()> {
        let from = self.at;
        self.at += 1;
        loop {
            self.at += self.bytes[self.at..].iter().position(|byte| *byte == quote)? + 1;
            if self.peek(0) != quote {
                break;
            }
            self.at += 1;
        }
        self.lexed.shape.push_str(&self.text[from..self.at]);
        self.last = Last::Operand;
        Some(())
    }

    /// `$1`, or a text between `$tag$` and `$tag$`.
    fn dollar(&mut self) -> Option<()> {
        let rest = &self.text[self.at + 1..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 {
            let number = rest[..digits].parse().unwrap_or(u16::MAX);
            self.lexed.parameters = self.lexed.parameters.max(number);
            self.lexed.shape.push_str(&self.text[self.at..self.at + 1 + digits]);
            self.at += 1 + digits;
            self.last = Last::Operand;
            return Some(());
        }
        let tag =
            rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80).count();
        if !rest[tag..].starts_with('$') {
            self.at += 1;
            self.lexed.shape.push('$');
            self.last = Last::Operator;
            return Some(());
        }
        let (from, tag) = (self.at, &self.text[self.at..self.at + tag + 2]);
        let content = from + tag.len();
        let length = self.text[content..].find(tag)?;
        self.at = content + length + tag.len();
        let value = self.lexed.values.len();
        self.lexed.values.push_str(&self.text[content..content + length]);
        self.literal(Kind::Quoted, from, from, value);
        Some(())
    }

    /// A text in quotes. `from` is where its prefix begins, if it has one.
    fn quoted(&mut self, from: usize, quote: u8, has_escapes: bool) -> Option<()> {
        let goes_on =
            self.last == Last::Quoted && self.since_last_literal(from).is_some_and(|between| between.contains('\n'));
        let value = self.lexed.values.len();
        self.at += 1;
        loop {
            let run =
                self.bytes[self.at..].iter().position(|byte| *byte == quote || (has_escapes && *byte == b'\\'))?;
            self.lexed.values.push_str(&self.text[self.at..self.at + run]);
            self.at += run;
            if self.peek(0) == b'\\' {
                self.escape()?;
            } else if self.peek(1) == quote {
                self.lexed.values.push(quote as char);
                self.at += 2;
            } else {
                self.at += 1;
                break;
            }
        }
        if goes_on && let Some(last) = self.lexed.literals.last_mut() {
            (last.place.end, last.value.end) = (self.at, self.lexed.values.len());
            let length = self.lexed.shape.trim_end_matches(' ').len();
            self.lexed.shape.truncate(length);
            return Some(());
        }
        self.literal(Kind::Quoted, from, from, value);
        self.last = Last::Quoted;
        Some(())
    }

    fn since_last_literal(&self, until: usize) -> Option<&str> {
        let between = &self.text[self.lexed.literals.last()?.place.end..until];
        between.trim().is_empty().then_some(between)
    }

    /// What a backslash and the characters after it stand for.
    fn escape(&mut self) -> Option<()> {
        let letter = self.text[self.at + 1..].chars().next()?;
        self.at += 1 + letter.len_utf8();
        let digits = |lexer: &Self, radix: u32, most: usize| {
            let is_digit = |byte: &u8| (*byte as char).is_digit(radix);
            let end = lexer.bytes[lexer.at..].iter().take(most).take_while(|byte| is_digit(byte)).count();
            (u32::from_str_radix(&lexer.text[lexer.at..lexer.at + end], radix).ok(), end)
        };
        let plain = match letter {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            '0' if self.is_mysql() => '\0',
            'Z' if self.is_mysql() => '\u{1a}',
            'f' if !self.is_mysql() => '\u{c}',
            'x' | 'u' | 'U' if !self.is_mysql() => {
                let most = match letter {
                    'x' => 2,
                    'u' => 4,
                    _ => 8,
                };
                let (number, length) = digits(self, 16, most);
                self.at += length;
                // Half of a surrogate pair, or a byte that is no letter by itself.
                number.filter(|number| letter != 'x' || *number < 0x80).and_then(char::from_u32)?
            }
            '0'..='7' if !self.is_mysql() => {
                self.at -= 1;
                let (number, length) = digits(self, 8, 3);
                self.at += length;
                number.filter(|number| *number < 0x80).and_then(char::from_u32)?
            }
            // In a pattern these keep their backslash.
            '%' | '_' if self.is_mysql() => {
                self.lexed.values.push('\\');
                letter
            }
            other => other,
        };
        self.lexed.values.push(plain);
        Some(())
    }

    /// A number. `from` is where its sign is, if it has one.
    fn number(&mut self, from: usize) {
        let unsigned = self.at;
        let mut is_whole = true;
        let digits = |lexer: &mut Self| {
            while lexer.peek(0).is_ascii_digit() {
                lexer.at += 1;
            }
        };
        digits(self);
        if self.peek(0) == b'.' && self.peek(1) != b'.' {
            is_whole = false;
            self.at += 1;
            digits(self);
        }
        let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
        if matches!(self.peek(0), b'e' | b'E') && self.peek(1 + sign).is_ascii_digit() {
            is_whole = false;
            self.at += 1 + sign;
            digits(self);
        }
        let is_part_of_a_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
        if is_part_of_a_word(self.peek(0)) {
            // A number like 0x1F or 1_000.
            while is_part_of_a_word(self.peek(0)) {
                self.at += 1;
            }
            self.lexed.shape.push_str(&self.text[from..self.at]);
            self.last = Last::Operand;
            return;
        }
        let value = self.lexed.values.len();
        if from < unsigned {
            self.lexed.values.push('-');
        }
        self.lexed.values.push_str(&self.text[unsigned..self.at]);
        let is_integer = is_whole && self.lexed.values[value..].parse::<i64>().is_ok();
        self.literal(if is_integer { Kind::Integer } else { Kind::Decimal }, from, unsigned, value);
    }

    /// Whether a minus is the sign of a number.
    fn is_sign(&self) -> bool {
        let ahead = 1 + self.bytes[self.at + 1..].iter().take_while(|byte| **byte == b' ').count();
        let is_number =
            self.peek(ahead).is_ascii_digit() || (self.peek(ahead) == b'.' && self.peek(ahead + 1).is_ascii_digit());
        is_number && matches!(self.last, Last::Operator)
    }

    /// A word: a name, a keyword, or the prefix of a literal.
    fn word(&mut self) -> Option<()> {
        let from = self.at;
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || *byte >= 0x80;
        self.at += self.bytes[self.at..].iter().take_while(|byte| is_part(byte)).count();
        let word = &self.text[from..self.at];
        if self.peek(0) == b'\'' && self.is_prefix(word) {
            if word.eq_ignore_ascii_case("e") && !self.is_mysql() {
                return self.quoted(from, b'\'', true);
            }
            return self.raw(from);
        }
        if self.peek(0) == b'&' && self.peek(1) == b'\'' && word.eq_ignore_ascii_case("u") && !self.is_mysql() {
            self.at += 1;
            return self.raw(from);
        }
        self.lexed.shape.push_str(word);
        self.last = if BEFORE_VALUES.iter().any(|known| known.eq_ignore_ascii_case(word)) {
            Last::Operator
        } else {
            Last::Operand
        };
        Some(())
    }

    /// Whether a word before a quote belongs to the literal.
    fn is_prefix(&self, word: &str) -> bool {
        let is_letter = word.len() == 1 && matches!(word.as_bytes()[0] | 0x20, b'e' | b'n' | b'b' | b'x');
        is_letter || (self.is_mysql() && word.starts_with('_'))
    }

    /// A literal that stays as it is: bits, bytes, other encodings.
    fn raw(&mut self, from: usize) -> Option<()> {
        self.at += 1;
        self.at += self.bytes[self.at..].iter().position(|byte| *byte == b'\'')? + 1;
        self.lexed.shape.push_str(&self.text[from..self.at]);
        self.last = Last::Operand;
        Some(())
    }

    fn literal(&mut self, kind: Kind, from: usize, unsigned: usize, value: usize) {
        let (place, value) = (from..self.at, value..self.lexed.values.len());
        self.lexed.literals.push(Literal { kind, place, unsigned, value });
        self.lexed.shape.push(MARK);
        self.lexed.shape.push(kind.letter());
        self.last = Last::Operand;
    }
}

/// Keywords after which a minus is the sign of a number.
const BEFORE_VALUES: [&str; 12] =
    ["SELECT", "WHERE", "AND", "OR", "THEN", "ELSE", "WHEN", "BETWEEN", "LIMIT", "OFFSET", "RETURNING", "IN"];

#[cfg(test)]
mod tests {
    use super::*;

    /// The shapes of the statements of a text, each with the values of its literals.
    fn all(text: &str, dialect: Dialect) -> Vec<(String, Vec<String>)> {
        let (mut statements, mut from, mut lexed) = (Vec::new(), 0, Lexed::default());
        while from < text.len() {
            let (_, next) = read(text, from, dialect, &mut lexed).unwrap();
            let values = lexed.literals.iter().map(|literal| lexed.value(literal).to_string()).collect();
            statements.push((lexed.shape.replace(MARK, "@"), values));
            from = next;
        }
        statements
    }

    fn check(text: &str, shape: &str, values: &[&str]) {
        check_in(Dialect::Postgres, text, shape, values);
    }

    fn check_in(dialect: Dialect, text: &str, shape: &str, values: &[&str]) {
        let values = values.iter().map(|value| value.to_string()).collect();
        assert_eq!(all(text, dialect), [(shape.to_string(), values)], "{text}");
    }

    #[test]
    fn literals_and_blanks_leave_one_shape() {
        check("SELECT  a\n FROM t -- c\n WHERE b = 'it''s'", "SELECT a FROM t WHERE b = @q", &["it's"]);
        check("SELECT /* a /* b */ c */ 1", "SELECT @i", &["1"]);
        check("/*+ IndexScan(t) */ SELECT 1", "/*+ IndexScan(t) */ SELECT @i", &["1"]);
        check(
            "SELECT 1.5, .5, 1e3, 99999999999999999999",
            "SELECT @d, @d, @d, @d",
            &["1.5", ".5", "1e3", "99999999999999999999"],
        );
        check("SELECT E'a\\n\\x41\\101\\'b', $$it's$$, $q$$1$q$", "SELECT @q, @q, @q", &["a\nAA'b", "it's", "$1"]);
        check(
            "SELECT B'01', x'1F', U&'\\0041', 0x1F, t1.a2, \"A'b\"",
            "SELECT B'01', x'1F', U&'\\0041', 0x1F, t1.a2, \"A'b\"",
            &[],
        );
        check("SELECT 'a'\n  'b', 'c'", "SELECT @q, @q", &["ab", "c"]);
        check("SELECT $2::int + $1, a[1]", "SELECT $2::int + $1, a[@i]", &["1"]);
    }

    #[test]
    fn a_minus_is_a_sign_or_a_subtraction() {
        check(
            "SELECT a -1, a - 1, a + -1, (- 1), -.5",
            "SELECT a -@i, a - @i, a + @i, (@i), @d",
            &["1", "1", "-1", "-1", "-.5"],
        );
        check("UPDATE t SET a = a + -3047 WHERE b=-7", "UPDATE t SET a = a + @i WHERE b=@i", &["-3047", "-7"]);
        check("SELECT -9223372036854775808", "SELECT @i", &["-9223372036854775808"]);
    }

    #[test]
    fn statements_end_at_semicolons() {
        let found = all("BEGIN; SELECT ';' ;\nEND;", Dialect::Postgres);
        let shapes: Vec<&str> = found.iter().map(|(shape, _)| shape.as_str()).collect();
        assert_eq!(shapes, ["BEGIN", "SELECT @q", "END"]);
        let mut lexed = Lexed::default();
        for cut in ["SELECT 'a", "SELECT \"a", "SELECT /* a", "SELECT $$a", "SELECT E'\\"] {
            assert_eq!(read(cut, 0, Dialect::Postgres, &mut lexed), None, "{cut}");
        }
    }

    #[test]
    fn mysql_has_its_own_quotes_and_escapes() {
        check_in(Dialect::Mysql, "SELECT `a-b`, \"it's\", 'a\\'b\\\\' # c", "SELECT `a-b`, @q, @q", &["it's", "a'b\\"]);
        check_in(Dialect::Mysql, "SELECT _utf8'a', x'1F' -- c", "SELECT _utf8'a', x'1F'", &[]);
        check_in(Dialect::Mysql, "SELECT '50\\%', '\\Z'", "SELECT @q, @q", &["50\\%", "\u{1a}"]);
    }
}
