use super::{UnitFile, WordsError, relaxed_words, split_words};

fn values(file: &UnitFile, section: &str, key: &str) -> Vec<String> {
    file.all(section, key).iter().map(|entry| entry.value.clone()).collect()
}

#[test]
fn a_file_is_read_as_podman_reads_it() -> Result<(), super::UnitFileError> {
    let text = "# note\n[Container]\nImage=localhost/app:1\nHealthCmd=fetch | \\\n# inside\n; and this\n    head -1\n\
                Volume=/srv/a:/data\nVolume=\nVolume = /srv/b:/data\n[Service]\nRestart=always\n[Container]\n  Label=late=1\n\
                Exec=a\\\n  b\nPull=never";
    let file = UnitFile::parse(text)?;
    assert_eq!(values(&file, "Container", "HealthCmd"), ["fetch | head -1"]);
    assert_eq!(values(&file, "Container", "Volume"), ["/srv/b:/data"]);
    assert_eq!(values(&file, "Container", "Label"), ["late=1"]);
    assert_eq!(values(&file, "Container", "Exec"), ["ab"], "Podman puts nothing between the lines");
    assert_eq!(file.last("Container", "Pull"), Some("never"), "no newline at the end");
    assert_eq!(file.lines("Container", "Volume"), [8, 9, 10]);
    assert_eq!(file.lines("Container", "HealthCmd"), [4]);
    assert!(file.has_section("Service") && !file.has_section("Install"));
    Ok(())
}

#[test]
fn windows_line_ends_are_fine() -> Result<(), super::UnitFileError> {
    let file = UnitFile::parse("[Container]\r\nImage=a\\\r\n  b\r\n\r\nVolume=/x:/y\r\n")?;
    assert_eq!(file.last("Container", "Image"), Some("ab"));
    assert_eq!(values(&file, "Container", "Volume"), ["/x:/y"]);
    Ok(())
}

#[test]
fn what_podman_refuses_is_refused_with_its_line() {
    let cases = [
        ("\u{feff}[Container]\n", 1, "byte order mark"),
        ("Image=x\n[Container]\n", 1, "before the first group"),
        ("[Container]\nImage=x\n{{#if a}}\n", 3, "no key=value"),
        ("[]\n", 1, "no group"),
        ("[a[b]\n", 1, "no group"),
        ("[Container] # note\nImage=x\n", 1, "no key=value"),
        ("[Container]\n=x\n", 2, "no key=value"),
        ("[Container]\nImage\n", 2, "no key=value"),
        ("[Container]\nImage=a\0b\n", 2, "NUL"),
        ("[Unit]\nA=1 \\\n2\nnothing\n", 4, "no key=value"),
    ];
    for (text, line, part) in cases {
        match UnitFile::parse(text) {
            Ok(file) => panic!("{text:?} was read as {file:?}"),
            Err(error) => {
                assert_eq!(error.line, line, "{text:?}");
                assert!(error.message.contains(part), "{text:?}: {}", error.message);
            }
        }
    }
    for fine in ["", "\n", "# only\n", "[A]  \n", "[A]\nb c=d\n", "[A]\nB=1\\\n", "[A]\nB=\n"] {
        assert!(UnitFile::parse(fine).is_ok(), "{fine:?}");
    }
}

#[test]
fn a_continuation_lost_in_a_comment_at_the_end_is_lost_as_in_podman() -> Result<(), super::UnitFileError> {
    let file = UnitFile::parse("[Container]\nExec=true \\\n\n# the end\n")?;
    assert!(file.entries.is_empty());
    Ok(())
}

#[test]
fn one_value_is_trimmed_and_unquoted() -> Result<(), super::UnitFileError> {
    let file = UnitFile::parse("[C]\nA=\"x y\"\nB=1\nB=\nD=Yes\nE=maybe\n")?;
    assert_eq!(file.last("C", "A"), Some("x y"));
    assert_eq!(file.last("C", "B"), None);
    assert_eq!(
        (file.boolean("C", "D"), file.boolean("C", "E"), file.boolean("C", "F")),
        (Some(true), Some(false), None)
    );
    Ok(())
}

#[test]
fn words_follow_systemd() {
    let good: [(&str, &[&str]); 9] = [
        ("a  b\tc", &["a", "b", "c"]),
        ("\"a b\" 'c d'", &["a b", "c d"]),
        ("a\"b c\"d", &["ab cd"]),
        (r"a\sb \x41\u00e4\101", &["a b", "AäA"]),
        (r#"'it\'s' "say \"x\"""#, &["it's", "say \"x\""]),
        ("''", &[""]),
        ("", &[]),
        (r"foo\nfoo", &["foo\nfoo"]),
        (r#"type=bind,\"dst=/a,1\""#, &["type=bind,\"dst=/a,1\""]),
    ];
    for (value, words) in good {
        assert_eq!(
            split_words(value).as_deref(),
            Ok(words.iter().map(ToString::to_string).collect::<Vec<_>>().as_slice())
        );
    }
    assert_eq!(split_words("\"a"), Err(WordsError::OpenQuote));
    assert_eq!(split_words("a\\"), Err(WordsError::OpenEscape));
    assert_eq!(split_words(r"a\d"), Err(WordsError::UnknownEscape('d')));
    assert_eq!(split_words(r"\x00"), Err(WordsError::UnknownEscape('x')));
    assert_eq!(relaxed_words("\"a b").as_deref(), Ok(["a b".to_owned()].as_slice()));
}
