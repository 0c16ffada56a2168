//! From a file's bytes to code that runs: checked against the contract, compiled once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use outflow_graph::Unfit;
use sha2::{Digest, Sha256};
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, ComponentExportIndex, InstancePre, Linker, WasmList, WasmStr};
use wasmtime::{Config, Engine, Result, StoreContextMut};

use super::compiler;
use super::guest::Guest;
use super::spoken::spoken;
use crate::limits::{LOG_INSTRUCTIONS, STACK_BYTES};
use crate::version::PACKAGE;

/// What a file's bytes are known by.
pub(crate) type Hash = [u8; 32];

/// A plug-in, compiled and checked.
pub(crate) struct Code {
    pub(crate) hash: Hash,
    pub(crate) pre: InstancePre<Guest>,
    pub(crate) init: ComponentExportIndex,
    pub(crate) work: ComponentExportIndex,
    /// `save` and `restore`, if it has them.
    pub(crate) state: Option<(ComponentExportIndex, ComponentExportIndex)>,
    /// `hear`, if it has it.
    pub(crate) hear: Option<ComponentExportIndex>,
}

impl core::fmt::Debug for Code {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Code({:02x}{:02x}…)", self.hash[0], self.hash[1])
    }
}

/// What all plug-ins share.
struct Shared {
    engine: Engine,
    linker: Linker<Guest>,
    /// What was compiled and is still used.
    compiled: Mutex<BTreeMap<Hash, Weak<Code>>>,
}

fn shared() -> Result<&'static Shared, Unfit> {
    static SHARED: OnceLock<Result<Shared, String>> = OnceLock::new();
    let made = SHARED.get_or_init(|| Shared::new().map_err(|error| format!("{error:#}")));
    made.as_ref().map_err(|error| {
        Unfit::new(format!("WebAssembly cannot run here: {error}"), "leave elements of kind \"wasm\" out")
    })
}

/// What the relay and the compiler of plug-ins must have alike: code that was compiled with other settings
/// is refused.
#[must_use]
pub fn settings() -> Config {
    let mut settings = Config::new();
    // Instructions are counted, not time: the same packets end alike on every machine, and in the
    // simulator.
    settings.consume_fuel(true);
    settings.relaxed_simd_deterministic(true);
    settings.wasm_backtrace_max_frames(None);
    settings.max_wasm_stack(STACK_BYTES);
    settings
}

impl Shared {
    fn new() -> Result<Self> {
        let engine = Engine::new(&settings())?;
        let mut linker = Linker::new(&engine);
        let mut host = linker.instance(&format!("{PACKAGE}host@1.0.0"))?;
        host.func_wrap("now", |store: StoreContextMut<'_, Guest>, (): ()| Ok((store.data().now(),)))?;
        host.func_wrap("log", |mut store: StoreContextMut<'_, Guest>, (text,): (WasmStr,)| {
            let text = paid(&mut store, &text)?;
            store.data_mut().log(&text);
            Ok(())
        })?;
        host.func_wrap("print", |mut store: StoreContextMut<'_, Guest>, (text,): (WasmStr,)| {
            let text = paid(&mut store, &text)?;
            store.data_mut().print(&text);
            Ok(())
        })?;
        host.func_wrap("write", |mut store: StoreContextMut<'_, Guest>, (bytes,): (WasmList<u8>,)| {
            let mut parts = store.data_mut().parts().take();
            let written = match &mut parts {
                Some(parts) => parts.write(bytes.as_le_slice(&store)),
                None => Err("only a plug-in that asked for `parts` may write".to_owned()),
            };
            *store.data_mut().parts() = parts;
            written.map_err(|why| wasmtime::format_err!("{why}"))
        })?;
        Ok(Shared { engine, linker, compiled: Mutex::new(BTreeMap::new()) })
    }
}

/// A text for the log, which costs a plug-in instructions.
fn paid(store: &mut StoreContextMut<'_, Guest>, text: &WasmStr) -> Result<String> {
    let left = store.get_fuel()?;
    let text = text.to_str(&*store)?.into_owned();
    store.set_fuel(left.saturating_sub(LOG_INSTRUCTIONS + text.len() as u64))?;
    Ok(text)
}

impl Code {
    /// The code of these bytes; compiled only if no plug-in has it already.
    ///
    /// # Errors
    /// What keeps it from being a plug-in, and what to do.
    pub(crate) fn of(bytes: &[u8]) -> Result<Arc<Self>, Unfit> {
        let shared = shared()?;
        let hash: Hash = Sha256::digest(bytes).into();
        let lock = || shared.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(code) = lock().get(&hash).and_then(Weak::upgrade) {
            return Ok(code);
        }
        let code = Arc::new(Self::compile(shared, hash, bytes)?);
        let mut compiled = lock();
        compiled.retain(|_, code| code.strong_count() > 0);
        compiled.insert(hash, Arc::downgrade(&code));
        Ok(code)
    }

    fn compile(shared: &Shared, hash: Hash, bytes: &[u8]) -> Result<Self, Unfit> {
        let component = compiler::component(&shared.engine, bytes)?;
        let kind = component.component_type();
        let names: Vec<String> = kind.exports(&shared.engine).map(|(name, _)| name.to_owned()).collect();
        let element = spoken(names.iter().map(String::as_str), "element")?;
        let linker = linker(shared, &component)?;
        let pre = linker.instantiate_pre(&component).map_err(|error| {
            let what = format!("what it wants of its host does not fit: {error:#}");
            Unfit::new(what, "build it again with the wit folder of this version")
        })?;
        let function = |interface: &str, name: &str| {
            let (item, instance) = component.get_export(None, interface)?;
            matches!(item, ComponentItem::ComponentInstance(_)).then_some(())?;
            component.get_export_index(Some(&instance), name)
        };
        let missing = |name: &str| {
            let help = "build it again with the wit folder of this version";
            Unfit::new(format!("it has no function `{name}`, which elements have"), help)
        };
        let besides = |interface| spoken(names.iter().map(String::as_str), interface).ok();
        Ok(Code {
            hash,
            init: function(element, "init").ok_or_else(|| missing("init"))?,
            work: function(element, "work").ok_or_else(|| missing("work"))?,
            state: besides("state").and_then(|state| function(state, "save").zip(function(state, "restore"))),
            hear: besides("control").and_then(|control| function(control, "hear")),
            pre,
        })
    }
}

/// A linker for a component: WASI may be asked for, as compilers do without need, but not used.
fn linker(shared: &Shared, component: &Component) -> Result<Linker<Guest>, Unfit> {
    let kind = component.component_type();
    let mut is_wasi = false;
    for (name, _) in kind.imports(&shared.engine) {
        if name.starts_with("wasi:") {
            is_wasi = true;
        } else if !name.starts_with(PACKAGE) {
            let what = format!("it wants '{name}' of its host, which elements do not have");
            return Err(Unfit::new(what, "build it without that"));
        }
    }
    let mut linker = shared.linker.clone();
    if is_wasi {
        linker.define_unknown_imports_as_traps(component).map_err(|error| {
            Unfit::new(format!("it cannot be without WASI: {error:#}"), "build it for wasm32-unknown-unknown")
        })?;
    }
    Ok(linker)
}
