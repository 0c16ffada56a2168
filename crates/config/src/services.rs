//! Services of a stream: its elements and branches, as tables of the configuration and as a plan.

use core::ops::RangeInclusive;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use outflow_graph::limits::LANES_MAX;
use outflow_graph::{At, CATALOGUE, ElementPlan, Form, Input, Kind, Opt, Plan, SOURCE, Setting, find};
use outflow_media::image::{Rect, parse_size};
use toml::de::{DeTable, DeValue};

use crate::invalid::nearest;
use crate::section::unknown;
use crate::value::{Fault, Given, Value, beside, type_fault};
use crate::{BitRate, ByteSize, Invalid, Share, Vocabulary, check_name};

/// Keys of an element that are not options of its kind.
pub(crate) const ELEMENT_KEYS: &[&str] = &["element", "input", "context", "lanes", "bypass", "cpu_budget"];
/// Keys of a branch.
pub(crate) const BRANCH_KEYS: &[&str] = &["input", "services"];

/// No image is wider or higher than this.
const SIDE_MAX: usize = 1 << 15;

/// The elements of a stream, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Elements(pub BTreeMap<String, ElementPlan>);

/// The branches of a stream, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Branches(pub BTreeMap<String, BranchConfig>);

/// A branch of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BranchConfig {
    /// From what it is made; the stream itself if nothing is said.
    pub inputs: Vec<Input>,
    /// Elements that its packets go through, in this order, besides those that are named.
    pub services: Vec<ElementPlan>,
}

/// The services of a stream, the short form of branches written out.
pub(crate) fn plan(elements: &Elements, branches: &Branches) -> Plan {
    let mut plan = Plan { elements: elements.0.clone(), branches: BTreeMap::new() };
    for (name, branch) in &branches.0 {
        let mut inputs = branch.inputs.clone();
        for (number, service) in branch.services.iter().enumerate() {
            let element = service_name(name, number, &service.kind);
            plan.elements.insert(element.clone(), ElementPlan { inputs, ..service.clone() });
            inputs = vec![Input { from: element, output: None }];
        }
        plan.branches.insert(name.clone(), inputs);
    }
    plan
}

/// Files that elements name, made relative to the configuration's.
pub(crate) fn place_files(elements: &mut Elements, branches: &mut Branches, file: &Path) {
    let services = branches.0.values_mut().flat_map(|branch| &mut branch.services);
    for element in elements.0.values_mut().chain(services) {
        let Some(kind) = find(&element.kind) else { continue };
        for option in kind.options.iter().filter(|option| matches!(option.form, Form::File)) {
            if let Some(path) = element.settings.text(option.name) {
                let placed = beside(file, path.into());
                element.settings.set(option.name, Setting::Text(placed.display().to_string()));
            }
        }
    }
}

/// The name of an element that a branch has in its list of services: "gray/0-shrink".
fn service_name(branch: &str, number: usize, kind: &str) -> String {
    format!("{branch}/{number}-{kind}")
}

/// Where in a stream's table something of its plan stands: a path of keys, and an index behind them.
pub(crate) fn place(at: &At) -> (Vec<String>, Option<usize>) {
    let element = |name: &str, key: &str| match name.split_once('/') {
        Some((branch, rest)) => {
            let number = rest.split('-').next().and_then(|number| number.parse().ok());
            (vec!["branches".to_owned(), branch.to_owned(), "services".to_owned()], number)
        }
        None => (vec!["elements".to_owned(), name.to_owned(), key.to_owned()], None),
    };
    match at {
        At::Kind(name) => element(name, "element"),
        At::Inputs(name) => element(name, "input"),
        At::Lanes(name) => element(name, "lanes"),
        At::Setting(name, option) => element(name, option),
        At::Branch(name) => (vec!["branches".to_owned(), name.clone()], None),
        At::All => (vec!["elements".to_owned()], None),
    }
}

impl Value for Elements {
    fn read(given: &Given<'_>) -> Result<Self, Fault> {
        Self::read_among(given, &Vocabulary::default())
    }

    fn read_among(given: &Given<'_>, known: &Vocabulary) -> Result<Self, Fault> {
        let read = |name: &str, table: &DeTable<'_>, given: &Given<'_>| {
            if name == SOURCE {
                let what = format!("'{SOURCE}' is the stream itself");
                return Err((head(given), Invalid::new(what, "choose another name")));
            }
            element(table, given, ELEMENT_KEYS, known)
        };
        named(given, "[streams.stage.elements.thin]", read).map(Elements)
    }
}

impl Value for Branches {
    fn read(given: &Given<'_>) -> Result<Self, Fault> {
        Self::read_among(given, &Vocabulary::default())
    }

    fn read_among(given: &Given<'_>, known: &Vocabulary) -> Result<Self, Fault> {
        named(given, "[streams.stage.branches.small]", |_, table, _| branch(table, known)).map(Branches)
    }
}

/// Tables by name.
fn named<T>(
    given: &Given<'_>,
    example: &str,
    read: impl Fn(&str, &DeTable<'_>, &Given<'_>) -> Result<T, Fault>,
) -> Result<BTreeMap<String, T>, Fault> {
    let tables = given.get_ref().as_table().ok_or_else(|| type_fault(given, "a table of tables", example))?;
    let mut all = BTreeMap::new();
    for (name, given) in tables {
        let text = name.get_ref().as_ref();
        if text.contains(['.', '/']) {
            let what = format!("'{text}' is no name here");
            return Err((name.span(), Invalid::new(what, "use letters, digits, '_' and '-'")));
        }
        check_name(text).map_err(|invalid| (name.span(), invalid))?;
        let table = given.get_ref().as_table().ok_or_else(|| type_fault(given, "a table", example))?;
        all.insert(text.to_owned(), read(text, table, given)?);
    }
    Ok(all)
}

fn branch(table: &DeTable<'_>, known: &Vocabulary) -> Result<BranchConfig, Fault> {
    let mut branch = BranchConfig::default();
    for (key, value) in table {
        match key.get_ref().as_ref() {
            "input" => branch.inputs = inputs(value)?,
            "services" => {
                let list = value.get_ref().as_array();
                let example = "[\"gray\", { element = \"shrink\", factor = 2 }]";
                let list = list.ok_or_else(|| type_fault(value, "a list of elements", example))?;
                branch.services = list.iter().map(|one| service(one, known)).collect::<Result<_, _>>()?;
            }
            other => {
                return Err((key.span(), unknown(other, " of a branch", BRANCH_KEYS, &known.own_sections)));
            }
        }
    }
    Ok(branch)
}

/// An element of a list: its kind, or a table with that and its options.
fn service(given: &Given<'_>, known: &Vocabulary) -> Result<ElementPlan, Fault> {
    if let Some(kind) = given.get_ref().as_str() {
        check_kind(kind).map_err(|invalid| (given.span(), invalid))?;
        return Ok(ElementPlan { kind: kind.to_owned(), ..ElementPlan::default() });
    }
    let wanted = "{ element = \"shrink\", factor = 2 }";
    let table = given.get_ref().as_table().ok_or_else(|| type_fault(given, "an element", wanted))?;
    element(table, given, &["element", "context", "lanes", "bypass", "cpu_budget"], known)
}

fn element(
    table: &DeTable<'_>,
    given: &Given<'_>,
    keys: &[&str],
    known: &Vocabulary,
) -> Result<ElementPlan, Fault> {
    let Some(kind_given) = table.get("element") else {
        let help = "add it, as in element = \"filter\"; `outflow elements` lists all";
        return Err((head(given), Invalid::new("this element does not say what it is", help)));
    };
    let name = String::read(kind_given)?;
    let kind = check_kind(&name).map_err(|invalid| (kind_given.span(), invalid))?;
    let mut element = ElementPlan { kind: name, ..ElementPlan::default() };
    for (key, value) in table {
        match key.get_ref().as_ref() {
            "element" => {}
            "input" if keys.contains(&"input") => element.inputs = inputs(value)?,
            "context" => element.context = Some(String::read(value)?),
            "lanes" => element.lanes = lanes(value)?,
            "bypass" => element.bypass = flag(value)?,
            "cpu_budget" => element.budget = Option::<Share>::read(value)?.map(|share| share.0),
            other => {
                let option = kind.option(other).ok_or_else(|| {
                    let keys: Vec<_> =
                        kind.options.iter().map(|o| o.name).chain(keys.iter().copied()).collect();
                    let place = format!(" of element \"{}\"", kind.name);
                    (key.span(), unknown(other, &place, &keys, &known.own_sections))
                })?;
                element.settings.set(option.name, setting(option, value)?);
            }
        }
    }
    Ok(element)
}

fn check_kind(name: &str) -> Result<&'static Kind, Invalid> {
    find(name).ok_or_else(|| {
        let what = format!("there is no element \"{name}\"");
        let help = match nearest(name, CATALOGUE.iter().map(|kind| kind.name)) {
            Some(near) => format!("did you mean \"{near}\"? `outflow elements` lists all"),
            None => "`outflow elements` lists all".to_owned(),
        };
        Invalid::new(what, help)
    })
}

fn inputs(given: &Given<'_>) -> Result<Vec<Input>, Fault> {
    if let Some(text) = given.get_ref().as_str() {
        return Ok(vec![Input::parse(text)]);
    }
    let list = given.get_ref().as_array();
    let list = list.ok_or_else(|| type_fault(given, "the name of an element, or a list", "\"source\""))?;
    list.iter().map(|one| String::read(one).map(|text| Input::parse(&text))).collect()
}

fn lanes(given: &Given<'_>) -> Result<usize, Fault> {
    let lanes = usize::read(given)?;
    if !(1..=LANES_MAX).contains(&lanes) {
        let invalid =
            Invalid::new(format!("{lanes} lanes are not possible"), format!("write 1 to {LANES_MAX}"));
        return Err((given.span(), invalid));
    }
    Ok(lanes)
}

fn flag(given: &Given<'_>) -> Result<bool, Fault> {
    match given.get_ref() {
        DeValue::Boolean(flag) => Ok(*flag),
        _ => Err(type_fault(given, "true or false", "true")),
    }
}

fn setting(option: &Opt, given: &Given<'_>) -> Result<Setting, Fault> {
    let wrong = |what: String| refused(option, given, what);
    Ok(match option.form {
        Form::Whole(min, max) => Setting::Whole(whole(option, given, min..=max)?),
        Form::Text | Form::Secret | Form::File => Setting::Text(String::read(given)?),
        Form::Flag => Setting::Flag(flag(given)?),
        Form::Duration => Setting::Duration(Duration::read(given)?),
        Form::Rate => Setting::Rate(BitRate::read(given)?.0),
        Form::Size => Setting::Size(ByteSize::read(given)?.0),
        Form::Dimensions => {
            let text = String::read(given)?;
            let size = parse_size(&text).filter(|(width, height)| *width.max(height) <= SIDE_MAX);
            let (width, height) = size.ok_or_else(|| wrong(format!("'{text}' is no size")))?;
            Setting::Dimensions(width, height)
        }
        Form::Part => {
            let text = String::read(given)?;
            let part = text.parse::<Rect>().ok().filter(|part| part.width.max(part.height) <= SIDE_MAX);
            Setting::Part(part.ok_or_else(|| wrong(format!("'{text}' is no part of an image")))?)
        }
        Form::Word(words) => Setting::Text(word(option, given, words)?),
        Form::Words(words) => Setting::Texts(each(option, given, |one| word(option, one, words))?),
        Form::Texts => Setting::Texts(each(option, given, String::read)?),
        Form::Numbers(min, max) => {
            Setting::Numbers(each(option, given, |one| whole(option, one, min..=max))?)
        }
    })
}

/// A whole number within these bounds.
fn whole(option: &Opt, given: &Given<'_>, bounds: RangeInclusive<u64>) -> Result<u64, Fault> {
    let number = usize::read(given)? as u64;
    if bounds.contains(&number) { Ok(number) } else { Err(impossible(option, given, number.to_string())) }
}

/// One of these words.
fn word(option: &Opt, given: &Given<'_>, words: &[&str]) -> Result<String, Fault> {
    let text = String::read(given)?;
    if words.contains(&text.as_str()) {
        Ok(text)
    } else {
        Err(impossible(option, given, format!("\"{text}\"")))
    }
}

/// All items of a list.
fn each<T>(
    option: &Opt,
    given: &Given<'_>,
    read: impl Fn(&Given<'_>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let no_list = || refused(option, given, format!("'{}' is a list", option.name));
    given.get_ref().as_array().ok_or_else(no_list)?.iter().map(read).collect()
}

fn impossible(option: &Opt, given: &Given<'_>, what: String) -> Fault {
    refused(option, given, format!("{what} is not possible for '{}'", option.name))
}

/// What is given for an option is not what it takes.
fn refused(option: &Opt, given: &Given<'_>, what: String) -> Fault {
    (given.span(), Invalid::new(what, format!("write {}", option.form.describe())))
}

/// What was set for an element as a list of texts, "name = value", for people; secrets are left out.
pub(crate) fn written(element: &ElementPlan) -> Vec<String> {
    let value = |setting: &Setting| match setting {
        Setting::Whole(number) => number.to_string(),
        Setting::Text(text) => text.clone(),
        Setting::Flag(flag) => flag.to_string(),
        Setting::Duration(duration) => crate::Written(*duration).to_string(),
        Setting::Rate(rate) => BitRate(*rate).to_string(),
        Setting::Size(size) => ByteSize(*size).to_string(),
        Setting::Dimensions(width, height) => format!("{width}x{height}"),
        Setting::Part(part) => part.to_string(),
        Setting::Texts(texts) => texts.join(" "),
        Setting::Numbers(numbers) => numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(" "),
    };
    let form = |name: &str| Some(find(&element.kind)?.option(name)?.form);
    let is_shown = |name: &str| !matches!(form(name), Some(Form::Secret));
    let shown = element.settings.iter().filter(|(name, _)| is_shown(name));
    shown.map(|(name, setting)| format!("{name} = {}", value(setting))).collect()
}

/// A table may be the whole rest of the file; its first character is enough.
fn head(given: &Given<'_>) -> core::ops::Range<usize> {
    let span = given.span();
    span.start..span.start + 1
}
