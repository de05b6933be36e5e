//! Reasons to hold that need no look at the host, as clauses after "NAME is held: ".

use crate::hold::Reason;
use crate::module::QuadletSource;
use crate::problem::Problem;
use crate::quadlet::Finding;

use super::assets::own_line;
use super::draft::{Draft, FileDraft};
use super::{Body, Desired, Inputs, Resource, Trouble, bodies};

/// Adds what the modules themselves have wrong.
pub(super) fn tell(input: &Inputs, drafts: &[Draft], desired: &mut Desired) {
    for draft in drafts {
        let Some(part) = desired.modules.get_mut(&draft.module.name) else { continue };
        for resource in part.resources.values_mut() {
            resource.troubles.extend(unreadable(draft, &resource.source));
            resource.troubles.extend(unsafe_owner(draft));
            resource.troubles.extend(user_module(draft, &resource.source));
        }
        for (file_name, file) in &draft.files {
            if let Some(resource) = part.resources.get_mut(&bodies::quadlet_key(file_name, file)) {
                resource.troubles.extend(of_file(draft, file));
            }
        }
    }
    tell_vanished(input, drafts, desired);
}

fn unreadable(draft: &Draft, source: &str) -> Option<Trouble> {
    let own = draft.problems.iter().find(|problem| problem.file == source && !source.is_empty());
    let problem = own.or_else(|| draft.problems.first())?;
    let clause = match own {
        Some(own) => own.to_string(),
        None if problem.file.is_empty() => problem.message.clone(),
        None => format!("its module cannot be used as it is: {problem}"),
    };
    let Problem { hint, .. } = problem;
    Some(Trouble { reason: Reason::Unreadable, clause, hint: hint.clone() })
}

fn unsafe_owner(draft: &Draft) -> Option<Trouble> {
    let first = draft.module.unsafe_owner.first()?;
    let clause = format!("its module runs as root and could be changed by somebody else: {first}");
    Some(Trouble { reason: Reason::UnsafeOwner, clause, hint: None })
}

fn user_module(draft: &Draft, source: &str) -> Option<Trouble> {
    let own = draft.user_signs.iter().find(|(file, _)| file.file == source);
    let (file, sign) = own.or_else(|| draft.user_signs.first())?;
    let place = place(file, sign);
    let clause = format!("its module is made for a user's own manager ({place} has {})", sign.what);
    Some(Trouble { reason: Reason::UserModule, clause, hint: None })
}

fn of_file(draft: &Draft, file: &FileDraft) -> Vec<Trouble> {
    let mut troubles = Vec::new();
    if let [first, second, ..] = file.twins.as_slice() {
        let clause = format!("both {first} and {second} would be installed as {}", file.path);
        troubles.push(Trouble { reason: Reason::ClaimedTwice, clause, hint: None });
    }
    troubles.extend(file.facts.unresolved.iter().map(|finding| unresolved(file.source, finding)));
    for (installed, example) in &file.assets.missing {
        troubles.push(missing(draft, file, installed, *example));
    }
    troubles
}

fn unresolved(source: &QuadletSource, finding: &Finding) -> Trouble {
    let Finding { key, text, what, line: _ } = finding;
    let key = key.trim_end_matches('=');
    let clause =
        format!("{}: {key}={text} cannot be known before the start: {what} is not set", place(source, finding));
    let hint = format!("set it with Environment= or EnvironmentFile= in [Service] of {}", source.file);
    Trouble { reason: Reason::Unresolved, clause, hint: Some(hint) }
}

fn missing(draft: &Draft, file: &FileDraft, installed: &str, example: Option<&str>) -> Trouble {
    let directory = file.path.parent();
    let path = directory.and_then(|directory| directory.join(installed).ok());
    let is_env = path.is_some_and(|path| file.facts.env_files.contains(&path));
    let (reason, what) = if is_env { (Reason::MissingEnvFile, "environment file ") } else { (Reason::MissingPath, "") };
    let there = example.map(|example| format!("; {example} is there")).unwrap_or_default();
    let clause = format!("it refers to the {what}{installed}, which is not in its module{there}");
    let hint = example.map(|example| {
        let directory = format!("/etc/holdfast/modules/{}", draft.module.name);
        format!("cp {directory}/{example} {directory}/{}", example.trim_end_matches(".example"))
    });
    Trouble { reason, clause, hint }
}

/// `web.container:4`; for a line of a drop-in the drop-in's name.
fn place(source: &QuadletSource, finding: &Finding) -> String {
    match (own_line(source, finding.line), source.dropins.as_slice()) {
        (Some(line), _) => format!("{}:{line}", source.file),
        (None, [only]) if finding.line.is_some() => only.clone(),
        (None, _) => source.file.clone(),
    }
}

fn tell_vanished(input: &Inputs, drafts: &[Draft], desired: &mut Desired) {
    for (name, part) in &mut desired.modules {
        let is_there = drafts.iter().any(|draft| draft.module.name == *name);
        if is_there && !(part.resources.values().all(is_only_in_ledger)) {
            continue;
        }
        for (key, resource) in &mut part.resources {
            let ran = part.name.as_ref().and_then(|name| input.ledger.entry(name, key)).is_some_and(|entry| entry.ran);
            let goes_on = if ran { ", and it goes on running" } else { "" };
            let state = if is_there { "asks for nothing any more" } else { "is gone" };
            let clause = format!("the directory of module {name} {state}{goes_on}");
            let hint = Some(format!("put /etc/holdfast/modules/{name} back"));
            resource.troubles.push(Trouble { reason: Reason::MassRemoval, clause, hint });
        }
    }
}

/// True for what only the ledger knows of: no file of the module asks for it.
fn is_only_in_ledger(resource: &Resource) -> bool {
    resource.body == Body::Opaque && resource.source.is_empty() && resource.troubles.is_empty()
}
