use std::collections::BTreeMap;

use super::{EnvFiles, Expander, HostFacts, environment_files, read_environment};
use crate::unitfile::{UnitFile, UnitFileError};

fn host() -> HostFacts {
    HostFacts {
        hostname: "box.example.test".to_owned(),
        machine_id: "0123456789abcdef0123456789abcdef".to_owned(),
        boot_id: "fedcba9876543210fedcba9876543210".to_owned(),
        kernel: String::new(),
        architecture: "x86-64".to_owned(),
    }
}

#[test]
fn specifiers_of_the_system_manager() {
    let host = host();
    let plain = Expander::new(&host, "my-app.service", BTreeMap::new());
    let instance = Expander::new(&host, r"tpl-a@srv-my\x2ddata.service", BTreeMap::new());
    let cases = [
        (&plain, "%n %N %p %i|", "my-app.service my-app my-app |"),
        (&plain, "%j %J %P %f", "app app my/app /my/app"),
        (&plain, "%t %S %C %L %E %T %V %h", "/run /var/lib /var/cache /var/log /etc /tmp /var/tmp /root"),
        (&plain, "%u %U %g %G %%h 100%", "root 0 root 0 %h 100%"),
        (&plain, "%H %l %a", "box.example.test box x86-64"),
        (&instance, "%N %p", r"tpl-a@srv-my\x2ddata tpl-a"),
        (&instance, "%i %I %f %j", r"srv-my\x2ddata srv/my-data /srv/my-data a"),
    ];
    for (expander, text, wanted) in cases {
        let expanded = expander.specifiers(text);
        assert_eq!((expanded.text.as_str(), expanded.open.len()), (wanted, 0), "{text}");
    }
}

#[test]
fn what_cannot_be_known_is_open() {
    let host = host();
    let env = BTreeMap::from([("PORT".to_owned(), "80".to_owned()), ("TWO".to_owned(), "a b".to_owned())]);
    let expander = Expander::new(&host, "web.service", env);
    let cases: [(&str, &str, &[&str]); 10] = [
        ("${PORT}:8080", "80:8080", &[]),
        ("$PORT", "80", &[]),
        ("a$PORT", "a$PORT", &[]),
        ("$$PORT and $${PORT}", "$PORT and ${PORT}", &[]),
        ("${GONE}:8080", "${GONE}:8080", &["${GONE}"]),
        ("$GONE", "$GONE", &["$GONE"]),
        ("$TWO", "$TWO", &["$TWO"]),
        ("$PORT:8080", "$PORT:8080", &["$PORT:8080"]),
        ("${PORT:-1}", "${PORT:-1}", &["${PORT:-1}"]),
        ("/srv/%v/%q", "/srv/%v/%q", &["%v", "%q"]),
    ];
    for (word, text, open) in cases {
        let expanded = expander.word(word);
        assert_eq!(expanded.text, text, "{word}");
        assert_eq!(expanded.open, open, "{word}");
    }
}

#[test]
fn a_lasting_text_does_not_change_with_the_boot() {
    let host = host();
    let expander = Expander::new(&host, "web.service", BTreeMap::new()).lasting();
    let expanded = expander.word("%b %v %m");
    assert_eq!(expanded.text, "%b %v 0123456789abcdef0123456789abcdef");
    assert!(expanded.open.is_empty());
}

#[test]
fn environment_files_win_over_environment() -> Result<(), UnitFileError> {
    let unit = UnitFile::parse(
        "[Service]\nEnvironmentFile=/gone\nEnvironmentFile=\nEnvironmentFile=/etc/%N.env\nEnvironmentFile=-/etc/more.env\n\
         EnvironmentFile=rel.env\nEnvironment=A=1 \"B=two words\" HOST=%H 9X=no\nEnvironment='C=c'\n",
    )?;
    let files = environment_files(&unit, &host(), "web.service");
    assert_eq!(files, [("/etc/web.env".to_owned(), false), ("/etc/more.env".to_owned(), true)]);
    let text = "# note\n; note\nA=2\nexport Z=1\n D = \" q \\\" x \\n\"  tail  \nE='a b'\\\n' c'\nF=x y  # kept\nG=\nno line\nA=3";
    let read = EnvFiles::from([("/etc/web.env".to_owned(), Some(text.to_owned())), ("/etc/more.env".to_owned(), None)]);
    let env = read_environment(&unit, &read, &host(), "web.service");
    let found: Vec<(&str, &str)> = env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let wanted = [
        ("A", "3"),
        ("B", "two words"),
        ("C", "c"),
        ("D", " q \" x \\ntail"),
        ("E", "a b' c'"),
        ("F", "x y  # kept"),
        ("G", ""),
        ("HOST", "box.example.test"),
        ("PODMAN_SYSTEMD_UNIT", "web.service"),
    ];
    assert_eq!(found, wanted);
    Ok(())
}
