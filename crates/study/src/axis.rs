//! Values that vary.

use core::fmt;

use toml::{Table, Value};

use super::error::StudyError;

/// Keys whose values change together.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What it is called in results.
    pub name: String,
    labels: Vec<Label>,
    keys: Vec<(String, Vec<Value>)>,
}

/// What a value is called.
#[derive(Debug, Clone, PartialEq)]
pub enum Label {
    /// A number.
    Number(f64),
    /// A word.
    Word(String),
}

impl Label {
    /// The number; `None` of a word.
    pub fn number(&self) -> Option<f64> {
        match self {
            Label::Number(number) => Some(*number),
            Label::Word(_) => None,
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Label::Number(number) => write!(f, "{number}"),
            Label::Word(word) => f.write_str(word),
        }
    }
}

impl From<&Value> for Label {
    fn from(value: &Value) -> Self {
        match value {
            Value::Integer(number) => Label::Number(*number as f64),
            Value::Float(number) => Label::Number(*number),
            Value::String(word) => Label::Word(word.clone()),
            other => Label::Word(other.to_string()),
        }
    }
}

impl Axis {
    /// Reads a sweep: a name, keys with lists of the same length, and labels if the values of the first key are
    /// not what to call them.
    pub(super) fn new(table: Table) -> Result<Self, StudyError> {
        let (mut name, mut labels, mut keys) = (None, None, Vec::new());
        for (key, value) in table {
            match (key.as_str(), value) {
                ("name", Value::String(given)) => name = Some(given),
                ("labels", Value::Array(given)) => labels = Some(given.iter().map(Label::from).collect()),
                (_, Value::Array(values)) if !values.is_empty() => keys.push((key, values)),
                (_, other) => {
                    let what =
                        format!("the sweep's '{key}' is {other}: write a list of values, as [1, 2, 3]");
                    return Err(StudyError::Values(what));
                }
            }
        }
        let Some((first, values)) = keys.first() else {
            return Err(StudyError::Values("a sweep has no key: say which value varies".to_owned()));
        };
        let name = name.unwrap_or_else(|| first.clone());
        let labels: Vec<Label> = labels.unwrap_or_else(|| values.iter().map(Label::from).collect());
        if let Some((key, values)) = keys.iter().find(|(_, values)| values.len() != labels.len()) {
            return Err(StudyError::Values(format!(
                "the sweep '{name}' has {} values for '{key}' and {} others: give as many of each",
                values.len(),
                labels.len()
            )));
        }
        Ok(Axis { name, labels, keys })
    }

    /// How many values there are.
    pub(super) fn len(&self) -> usize {
        self.labels.len()
    }

    pub(super) fn label(&self, place: usize) -> Label {
        self.labels[place].clone()
    }

    /// Puts the values at a place into a network.
    pub(super) fn put(&self, place: usize, network: &mut Table) -> Result<(), StudyError> {
        self.keys.iter().try_for_each(|(key, values)| apply(network, key, values[place].clone()))
    }
}

/// Changes one value, whose last part may be missing so far.
pub(super) fn apply(table: &mut Table, key: &str, value: Value) -> Result<(), StudyError> {
    let (path, last) = key.rsplit_once('.').map_or((None, key), |(path, last)| (Some(path), last));
    let mut place = table;
    for part in path.into_iter().flat_map(|path| path.split('.')) {
        place = match place.get_mut(part) {
            Some(Value::Table(inner)) => inner,
            _ => {
                let what = format!("'{key}' names nothing: there is no table '{part}'");
                return Err(StudyError::Values(what));
            }
        };
    }
    place.insert(last.to_owned(), value);
    Ok(())
}

/// Where an error is, for messages.
pub(super) fn at(labels: &[(String, Label)]) -> String {
    let values: Vec<_> = labels.iter().map(|(name, label)| format!("{name} = {label}")).collect();
    if values.is_empty() { String::new() } else { format!("with {}: ", values.join(", ")) }
}
