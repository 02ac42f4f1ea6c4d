use uuid::Uuid;

use super::*;

fn octets(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// RFC 5869, appendix A: test cases 1 to 3, those of SHA-256.
#[test]
fn the_primitive_is_hkdf_sha_256() {
    let counted = |from: u8, to: u8| (from..=to).collect::<Vec<u8>>();
    let derived = |salt: Option<&[u8]>, input: &[u8], info: &[&[u8]], length: usize| {
        let mut output = vec![0; length];
        hkdf(salt, input, info, &mut output);
        output
    };
    let info = counted(0xf0, 0xf9);
    assert_eq!(
        // The parts of the information are one after the other, with nothing in between.
        derived(Some(&counted(0, 12)), &[0x0b; 22], &[&info[..4], &info[4..]], 42),
        octets("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865")
    );
    assert_eq!(
        derived(Some(&counted(0x60, 0xaf)), &counted(0, 0x4f), &[&counted(0xb0, 0xff)], 82),
        octets(
            "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87"
        )
    );
    assert_eq!(
        derived(None, &[0x0b; 22], &[], 42),
        octets("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8")
    );
}

/// The vectors of `docs/design/protocol.md`, which other programs can hold theirs against.
#[test]
fn keys_are_those_of_the_page() {
    let tenant =
        Secret::new(octets("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f").try_into().unwrap());
    let page = include_str!("../../../../docs/design/protocol.md");
    for (server_name, client_name, week) in
        [("fra-1", "ams-1", 2951), ("fra-1", "ams-1", 2952), ("ams-1", "fra-1", 2951)]
    {
        let server_key = server(&tenant, server_name, week);
        let client_key = client(&server_key, client_name, week);
        let row = format!(
            "| `{server_name}` | `{client_name}` | {week} | `{}` | `{}` |",
            server_key.to_hex(),
            client_key.to_hex()
        );
        assert!(page.contains(&row), "the page has another row than {row}");
    }
}

#[test]
fn names_read_what_they_print_and_nothing_else() {
    for text in ["a@0", "ams-1@2951", "A_9@4294967295"] {
        assert_eq!(text.parse::<KeyName>().unwrap().to_string(), text);
    }
    let long = format!("{}@1", "n".repeat(65));
    for text in
        ["", "@", "a@", "@1", "a", "a@-1", "a@01", "a@+1", "a@4294967296", "a.b@1", "a@b@1", "a @1", "a\0@1", &long]
    {
        assert_eq!(text.parse::<KeyName>(), Err(KeyNameError), "{text}");
    }
}

fn name(text: &str) -> KeyName {
    text.parse().unwrap()
}

fn table(denied: &str, holder: &str) -> Table {
    let weeks: Vec<String> = [2949, 2950, 2951, 2953]
        .iter()
        .map(|week| format!(r#"{{"week":{week},"secret":"{}"}}"#, "07".repeat(32)))
        .collect();
    let text = format!(r#"{{"weeks":[{}],"denied":[{denied}],"holder":{holder},"later":[1,{{}}]}}"#, weeks.join(","));
    Table::parse(text.as_bytes()).unwrap()
}

#[test]
fn the_weeks_beside_this_one_count() {
    let table = table("", "null");
    for week in [2950, 2951] {
        let expected = client(&Secret::new([7; 32]), "a", week);
        assert_eq!(table.key(&name(&format!("a@{week}")), 2951), Ok(expected));
    }
    assert!(matches!(table.key(&name("a@2952"), 2951), Err(NoKey::Missing { .. })));
    for week in [2949, 2953] {
        let error = table.key(&name(&format!("a@{week}")), 2951).unwrap_err();
        assert!(error.to_string().contains(&format!("week {week}, and it is week 2951")), "{error}");
    }
    assert_ne!(table.key(&name("a@2951"), 2951), table.key(&name("b@2951"), 2951));
    assert_ne!(table.key(&name("a@2951"), 2951), table.key(&name("a@2950"), 2951));
}

#[test]
fn a_load_needs_the_lease() {
    let (mine, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let lease = |run, fence| Some(Lease { run, fence });
    let held = table("", &format!(r#"{{"run":"{mine}","revision":7}}"#));
    assert_eq!(held.admits(lease(mine, 7)), Ok(()));
    assert_eq!(held.admits(lease(mine, 4)), Ok(()), "renewed since");
    assert_eq!(held.admits(lease(mine, 8)), Err(NotLeased::Ahead { run: mine, fence: 8, seen: 7 }));
    assert_eq!(held.admits(lease(other, 7)), Err(NotLeased::Other(other)));
    assert_eq!(held.admits(None), Err(NotLeased::Unnamed));
    assert_eq!(table("", "null").admits(lease(mine, 7)), Err(NotLeased::Nobody(mine)));
    let said = held.admits(lease(other, 7)).unwrap_err().to_string();
    assert!(said.contains(&other.to_string()) && !said.contains(&mine.to_string()), "{said}");
}

#[test]
fn tables_of_no_use_are_refused() {
    let table = table(r#""evil","worse""#, "null");
    let before = Table::parse(br#"{"weeks":[]}"#).unwrap();
    assert!(matches!(before.key(&name("a@2951"), 2951), Err(NoKey::Missing { .. })));
    assert!(table.denies("evil") && table.denies("worse") && !table.denies("good"));
    let secret = "07".repeat(32);
    for (text, word) in [
        (String::new(), "EOF"),
        (r#"{"denied":[]}"#.to_owned(), "weeks"),
        (r#"{"weeks":[{"week":1,"secret":"07"}]}"#.to_owned(), "hexadecimal"),
        (format!(r#"{{"weeks":[{{"week":-1,"secret":"{secret}"}}]}}"#), "-1"),
        (format!(r#"{{"weeks":[{{"week":1,"secret":"{secret}"}},{{"week":1,"secret":"{secret}"}}]}}"#), "twice"),
        (format!(r#"{{"weeks":[{{"week":1,"secret":"{secret}"}}],"holder":{{"run":"x","revision":1}}}}"#), "UUID"),
        (format!(r#"{{"weeks":[{{"week":1,"secret":"{secret}"}}]}} x"#), "trailing"),
    ] {
        let error = Table::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(word) && !error.contains(&secret), "{text}: {error}");
    }
}
