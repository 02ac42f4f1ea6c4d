//! `narrows methods [NAME]`: what there is, and each method's own manual.

use std::fmt::Write as _;

use narrows_methods::{METHODS, find};
use narrows_probe::MethodInfo;

use crate::exit::{Exit, Failure};
use crate::output;

/// The registry, or one method's manual.
#[derive(Debug, clap::Args)]
pub(crate) struct MethodsArgs {
    /// One method: print its manual
    #[arg(add = crate::complete::methods())]
    name: Option<String>,
    /// Print JSON
    #[arg(long, short = 'J')]
    json: bool,
}

pub(crate) fn run(args: &MethodsArgs) -> Result<Exit, Failure> {
    let text = match &args.name {
        None if args.json => json(&METHODS.iter().map(|method| method.info()).collect::<Vec<_>>()),
        None => table(),
        Some(name) => {
            let method = find(name).ok_or_else(|| unknown(name))?;
            if args.json { json(method.info()) } else { manual(method.info()) }
        }
    };
    output::write(&text, None)?;
    Ok(Exit::Valid)
}

/// No such method; names those there are.
pub(crate) fn unknown(name: &str) -> Failure {
    let known: Vec<&str> = METHODS.iter().map(|method| method.info().name).collect();
    Failure::usage(format!("there is no method \"{name}\"; there are: {}", known.join(", ")))
}

fn json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).map_or_else(|error| format!("{{\"error\":\"{error}\"}}\n"), |text| text + "\n")
}

fn table() -> String {
    let mut out = String::new();
    for method in METHODS {
        let info = method.info();
        let class = &info.class;
        let _ = writeln!(out, "{:<10} {:<24} {}", info.name, info.metric.name(), info.summary);
        let _ = writeln!(
            out,
            "{:<10} {}, {}, {}, {}, deployed on {}, {}",
            "",
            class.scope,
            class.methodology,
            class.activity,
            class.protocol,
            class.deployment,
            if class.works_on_asymmetric { "right on asymmetric paths" } else { "not on asymmetric paths" },
        );
    }
    out
}

fn manual(info: &MethodInfo) -> String {
    let mut out = info.manual();
    out.push_str("\n\n# Classification\n\n");
    let class = &info.class;
    let rows = [
        ("metric", info.metric.to_string()),
        ("scope", class.scope.to_string()),
        ("methodology", class.methodology.to_string()),
        ("activity", class.activity.to_string()),
        ("protocol", class.protocol.to_string()),
        ("asymmetric paths", if class.works_on_asymmetric { "yes" } else { "no" }.to_owned()),
        ("deployment", class.deployment.to_string()),
        ("layer", class.layer.map_or("none".to_owned(), |layer| format!("{layer:?}"))),
        ("privilege", class.privilege.to_string()),
        (
            "typical cost",
            format!(
                "{} in {:.1} s",
                narrows_units::Octets::new(info.imposes.typical_octets),
                info.imposes.typical_time.as_secs_f64()
            ),
        ),
        (
            "highest cost",
            format!(
                "{} in {:.0} s",
                narrows_units::Octets::new(info.imposes.max_octets),
                info.imposes.max_time.as_secs_f64()
            ),
        ),
    ];
    for (name, value) in rows {
        let _ = writeln!(out, "  {name:<17} {value}");
    }
    out
}
