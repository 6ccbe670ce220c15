//! Tokens of a statement, and how a database's dialect writes them.

use sqlparser::tokenizer::{Token, Tokenizer};

use super::{Dialect, is_word, quoted};

/// The tokens of a text, with the space between them.
pub fn of(text: &str, dialect: Dialect) -> Result<Vec<Token>, String> {
    let grammar = dialect.grammar();
    let tokens = Tokenizer::new(&*grammar, text).tokenize();
    let mut tokens = tokens.map_err(|e| format!("is not SQL that Encore knows: {e}"))?;
    while matches!(tokens.last(), Some(Token::SemiColon | Token::Whitespace(_) | Token::EOF)) {
        tokens.pop();
    }
    Ok(tokens)
}

/// How many parameters there are: `?`, or the greatest number of `$1`, `$2`, …
pub fn parameters(tokens: &[Token]) -> Result<usize, String> {
    let (mut plain, mut numbered) = (0, 0);
    for token in tokens {
        match token {
            Token::Placeholder(name) if name == "?" => plain += 1,
            Token::Placeholder(name) => numbered = numbered.max(number(name)?),
            _ => {}
        }
    }
    match (plain, numbered) {
        (plain, 0) => Ok(plain),
        (0, numbered) => Ok(numbered),
        _ => Err("has parameters of two forms, ? and $1; use one of them".into()),
    }
}

/// The number of a parameter such as `$1`.
pub fn number(name: &str) -> Result<usize, String> {
    let digits = name.strip_prefix(['$', '?']).and_then(|digits| digits.parse::<usize>().ok());
    digits
        .filter(|number| (1..=u16::MAX.into()).contains(number))
        .ok_or_else(|| format!("has the parameter {name}, which Encore does not know; write ? or $1"))
}

/// The text of tokens in another dialect. `parameter` writes a parameter by its number from 1.
pub fn write(
    tokens: &[Token],
    from: Dialect,
    to: Dialect,
    parameter: &mut dyn FnMut(usize) -> String,
) -> Result<String, String> {
    let mut text = String::new();
    let mut plain = 0;
    let mut follows_collate = false;
    for token in tokens {
        match token {
            Token::Placeholder(name) if name == "?" => {
                plain += 1;
                text += &parameter(plain);
            }
            Token::Placeholder(name) => text += &parameter(number(name)?),
            // The name of a collation keeps its letters.
            Token::Word(word) if word.quote_style.is_some() && from != to => {
                let folds = to == Dialect::Postgres && !follows_collate;
                text += &quoted(&if folds { word.value.to_lowercase() } else { word.value.clone() }, to);
            }
            // The tokenizer has taken the escapes out.
            Token::SingleQuotedString(content)
            | Token::EscapedStringLiteral(content)
            | Token::UnicodeStringLiteral(content)
            | Token::NationalStringLiteral(content) => text += &string(content, to),
            Token::DollarQuotedString(content) => text += &string(&content.value, to),
            Token::DoubleQuotedString(content) if from.is_like_mysql() => text += &string(content, to),
            other => text += &other.to_string(),
        }
        if !matches!(token, Token::Whitespace(_)) {
            follows_collate = is_word(token, "collate");
        }
    }
    Ok(text)
}

/// A literal text.
fn string(content: &str, to: Dialect) -> String {
    let content = content.replace('\'', "''");
    match to {
        Dialect::Mysql => format!("'{}'", content.replace('\\', "\\\\")),
        _ => format!("'{content}'"),
    }
}
