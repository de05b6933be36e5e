//! Is a text an image reference? The grammar that registries and Podman share, without a look at any registry.

/// What is wrong with a reference, as a clause. Podman reads the whole value, an inline `# comment` too.
///
/// # Errors
/// The clause. A reference with a specifier or variable in it is checked for blanks only.
pub(super) fn check(reference: &str) -> Result<(), String> {
    if reference.contains(char::is_whitespace) {
        return Err("an image reference has no blanks; a comment has a line of its own".to_owned());
    }
    let is_id = |text: &str| (12..=64).contains(&text.len()) && text.chars().all(|c| c.is_ascii_hexdigit());
    let by_transport = ["docker-archive:", "oci-archive:", "oci:", "dir:", "containers-storage:", "docker-daemon:"];
    if reference.contains(['$', '%']) || by_transport.iter().any(|start| reference.starts_with(start)) {
        return Ok(());
    }
    let reference = reference.strip_prefix("docker://").unwrap_or(reference);
    if is_id(reference) || reference.strip_prefix("sha256:").is_some_and(is_id) {
        return Ok(());
    }
    let (named, digest) = reference.split_once('@').map_or((reference, None), |(name, digest)| (name, Some(digest)));
    if let Some(digest) = digest {
        let hex = digest.split_once(':').map(|(_, hex)| hex).unwrap_or_default();
        if hex.len() < 32 || !hex.chars().all(|c| c.is_ascii_hexdigit()) {
            return Err(format!("\"{digest}\" is no digest"));
        }
    }
    let (path, tag) = match named.rsplit_once(':') {
        Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
        _ => (named, None),
    };
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if let Some(tag) = tag {
        let inner = tag.chars().all(|c| word(c) || matches!(c, '.' | '-'));
        if tag.is_empty() || tag.len() > 128 || !inner || !tag.starts_with(word) {
            return Err(format!("\"{tag}\" is no tag"));
        }
    }
    let domain = |part: &str| {
        part.contains(['.', ':']) || part == "localhost" || part.contains(|c: char| c.is_ascii_uppercase())
    };
    let path = match path.split_once('/') {
        Some((first, rest)) if domain(first) => rest,
        _ => path,
    };
    match path.split('/').find(|part| !is_component(part)) {
        Some(part) => {
            Err(format!("\"{part}\" is no part of an image name: it is written in a-z, 0-9, and . _ - inside"))
        }
        None => Ok(()),
    }
}

fn is_component(part: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    part.starts_with(plain) && part.ends_with(plain) && part.chars().all(|c| plain(c) || matches!(c, '.' | '_' | '-'))
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn references() {
        let digest = "a".repeat(64);
        let good = [
            "localhost/app:1.27.3".to_owned(),
            "app".to_owned(),
            "registry.example.test:5000/a/b-c_d.e:v1_2".to_owned(),
            format!("localhost/app@sha256:{digest}"),
            format!("localhost/app:1@sha256:{digest}"),
            format!("sha256:{digest}"),
            digest,
            "${REGISTRY}/app:%i".to_owned(),
            "docker://localhost/app".to_owned(),
            "dir:/srv/Image".to_owned(),
        ];
        for reference in good {
            assert_eq!(check(&reference), Ok(()), "{reference}");
        }
        for bad in [
            "localhost/app:1 # note",
            "localhost/App",
            "a:b c",
            "localhost/app:",
            "localhost/app@sha256:12",
            "a//b",
            "-a",
            "a:-1",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
