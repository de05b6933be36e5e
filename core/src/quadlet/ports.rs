//! `PublishPort=` in all its forms -> what is published and which host ports that claims.

use std::net::IpAddr;

use crate::ports::{PortClaim, Protocol, Span};
use crate::quadlet::Published;

/// Takes `[[ip:][host]:]container[/protocol]` apart, without a look at its numbers.
#[must_use]
pub fn split(text: &str) -> Published {
    let (address, protocol) = match text.split_once('/') {
        Some((address, protocol)) => (address, protocol.to_ascii_lowercase()),
        None => (text, "tcp".to_owned()),
    };
    let (host_ip, rest) = match address.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((v6, rest)) => (v6, rest.strip_prefix(':').unwrap_or(rest)),
        None => match address.matches(':').count() {
            0 | 1 => ("", address),
            _ => address.split_once(':').unwrap_or(("", address)),
        },
    };
    let (host, container) = rest.split_once(':').unwrap_or(("", rest));
    Published { host_ip: host_ip.to_owned(), host: host.to_owned(), container: container.to_owned(), protocol }
}

/// The host ports that are claimed. A port that Podman picks itself claims nothing.
///
/// # Errors
/// A clause that says what is wrong with the value, as Podman would find out at the start.
pub fn claims(published: &Published) -> Result<Vec<PortClaim>, String> {
    let Published { host_ip, host, container, protocol } = published;
    let address = match host_ip.as_str() {
        "" => None,
        text => Some(text.parse::<IpAddr>().map_err(|_| format!("\"{text}\" is no IP address"))?),
    };
    let inside = range(container)?;
    let protocols: Vec<Protocol> = protocol.split(',').map(protocol_of).collect::<Result<_, _>>()?;
    if host.is_empty() {
        return Ok(Vec::new());
    }
    let outside = range(host)?;
    if outside.1 - outside.0 != inside.1 - inside.0 {
        return Err(format!("the ranges {host} and {container} differ in length"));
    }
    let ports = outside.0..=outside.1;
    let span = Span::of_publish(address);
    Ok(ports
        .flat_map(|port| {
            let span = span.clone();
            protocols.iter().map(move |protocol| PortClaim { span: span.clone(), port, protocol: *protocol })
        })
        .collect())
}

fn protocol_of(text: &str) -> Result<Protocol, String> {
    match text {
        "tcp" => Ok(Protocol::Tcp),
        "udp" => Ok(Protocol::Udp),
        "sctp" => Ok(Protocol::Sctp),
        other => Err(format!("\"{other}\" is no protocol: it is tcp, udp or sctp")),
    }
}

fn range(text: &str) -> Result<(u16, u16), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (port(first)?, port(last)?);
    if last < first { Err(format!("the range {text} runs backwards")) } else { Ok((first, last)) }
}

fn port(text: &str) -> Result<u16, String> {
    match text.parse::<u16>() {
        Ok(port) if port != 0 => Ok(port),
        _ => Err(format!("\"{text}\" is no port: it is a number from 1 to 65535")),
    }
}

#[cfg(test)]
mod tests {
    use super::{claims, split};

    #[test]
    fn every_form_of_publish_port() {
        let cases: [(&str, [&str; 4], &[&str]); 14] = [
            ("97", ["", "", "97", "tcp"], &[]),
            ("1234/udp", ["", "", "1234", "udp"], &[]),
            ("80:96", ["", "80", "96", "tcp"], &["0.0.0.0:80/tcp"]),
            (":80:92", ["", "80", "92", "tcp"], &["0.0.0.0:80/tcp"]),
            ("::95", ["", "", "95", "tcp"], &[]),
            ("127.0.0.1:80:90/UDP", ["127.0.0.1", "80", "90", "udp"], &["127.0.0.1:80/udp"]),
            ("127.0.0.1::93", ["127.0.0.1", "", "93", "tcp"], &[]),
            ("0.0.0.0:80:91", ["0.0.0.0", "80", "91", "tcp"], &["0.0.0.0:80/tcp"]),
            ("[::1]:80:90", ["::1", "80", "90", "tcp"], &["[::1]:80/tcp"]),
            ("[::]:80:91", ["::", "80", "91", "tcp"], &["[::]:80/tcp"]),
            ("[::]::94", ["::", "", "94", "tcp"], &[]),
            (
                "8000-8002:9000-9002",
                ["", "8000-8002", "9000-9002", "tcp"],
                &["0.0.0.0:8000/tcp", "0.0.0.0:8001/tcp", "0.0.0.0:8002/tcp"],
            ),
            ("53:53/tcp,udp", ["", "53", "53", "tcp,udp"], &["0.0.0.0:53/tcp", "0.0.0.0:53/udp"]),
            ("65535:65535", ["", "65535", "65535", "tcp"], &["0.0.0.0:65535/tcp"]),
        ];
        for (text, [ip, host, container, protocol], wanted) in cases {
            let published = split(text);
            assert_eq!(published.host_ip, ip, "{text}");
            assert_eq!(published.host, host, "{text}");
            assert_eq!(published.container, container, "{text}");
            assert_eq!(published.protocol, protocol, "{text}");
            let found: Vec<String> = claims(&published).unwrap().iter().map(ToString::to_string).collect();
            assert_eq!(found, wanted, "{text}");
        }
    }

    #[test]
    fn what_podman_would_refuse_at_the_start() {
        let bad =
            ["99999:80", "0:80", "80:0", "a:80", "80:", "80:80/icmp", "300.1.1.1:80:80", "9-8:80-81", "80-82:80", ""];
        for text in bad {
            assert!(claims(&split(text)).is_err(), "{text}");
        }
    }
}
