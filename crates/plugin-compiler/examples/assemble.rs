//! Assembles `src/wasi/preview1.wat` again.

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/wasi");
    std::fs::write(folder.join("preview1.wasm"), wat::parse_file(folder.join("preview1.wat"))?)?;
    Ok(())
}
