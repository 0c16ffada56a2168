//! Begins a plug-in: NAME LANG FOLDER.

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("say NAME LANG FOLDER");
    let (name, lang, folder) = (next()?, next()?, next()?);
    let lang = outflow_plugin::Lang::find(&lang).ok_or("rust, go, c or js")?;
    for file in outflow_plugin::scaffold(&name, lang, folder.as_ref())? {
        println!("{}", file.display());
    }
    Ok(())
}
