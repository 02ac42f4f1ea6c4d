//! Name and password for an iperf3 server that asks for them.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;

use narrows_net::iperf3::{Padding, PublicKey};
use narrows_wire::iperf3::auth::Credentials;
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};

use crate::exit::Failure;

/// Where the password is, for those who cannot be asked for it; iperf3's own name.
const PASSWORD: &str = "IPERF3_PASSWORD";

#[derive(Debug, clap::Args)]
pub(crate) struct LoginArgs {
    /// Name to show an iperf3 server that asks for one; the password is `IPERF3_PASSWORD`, or asked
    /// for
    #[arg(long, value_name = "NAME", requires_all = ["iperf3", "rsa_public_key_path"])]
    username: Option<String>,
    /// The server's public RSA key, PEM; encrypts the password
    #[arg(long, value_name = "FILE", requires = "username")]
    rsa_public_key_path: Option<PathBuf>,
    /// Encrypt it as servers up to iperf3 3.16 expect it (PKCS#1 v1.5), not as later ones do (OAEP)
    #[arg(long, requires = "username")]
    use_pkcs1_padding: bool,
}

impl LoginArgs {
    /// What to show the server; `None` where the caller has no name.
    pub(super) fn token(&self) -> Result<Option<String>, Failure> {
        let (Some(user), Some(path)) = (&self.username, &self.rsa_public_key_path) else {
            return Ok(None);
        };
        let wrong = |error: narrows_net::iperf3::TokenError| Failure::usage(error.to_string());
        let key = PublicKey::read(path).map_err(wrong)?;
        let password = match std::env::var(PASSWORD) {
            Ok(password) => password,
            Err(std::env::VarError::NotPresent) => asked_for(user)?,
            Err(std::env::VarError::NotUnicode(_)) => {
                return Err(Failure::usage(format!("{PASSWORD} is no UTF-8 text")));
            }
        };
        let credentials = Credentials {
            user: user.clone(),
            password,
            unix_seconds: u64::try_from(crate::moment::Moment::now().unix_seconds()).unwrap_or(0),
        };
        let padding = if self.use_pkcs1_padding { Padding::Pkcs1 } else { Padding::Oaep };
        key.seal(&credentials, padding).map(Some).map_err(wrong)
    }

    /// What may help where the server does not accept the name.
    pub(super) fn hint(&self) -> &'static str {
        match (&self.username, self.use_pkcs1_padding) {
            (None, _) => "; --username and --rsa-public-key-path show one",
            (Some(_), false) => "; a server up to iperf3 3.16 needs --use-pkcs1-padding",
            (Some(_), true) => "; a server from iperf3 3.17 on may need it without --use-pkcs1-padding",
        }
    }
}

/// The terminal without its echo; as it was when this is dropped.
struct Unseen<'a> {
    terminal: &'a std::fs::File,
    before: Termios,
}

impl<'a> Unseen<'a> {
    fn new(terminal: &'a std::fs::File) -> nix::Result<Self> {
        let before = tcgetattr(terminal.as_fd())?;
        let mut unseen = before.clone();
        // Interrupts come as octets: nobody is left with a terminal that shows nothing.
        unseen.local_flags &= !(LocalFlags::ECHO | LocalFlags::ICANON | LocalFlags::ISIG);
        tcsetattr(terminal.as_fd(), SetArg::TCSAFLUSH, &unseen)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Unseen<'_> {
    fn drop(&mut self) {
        // A terminal that went away needs nothing more.
        let _ = tcsetattr(self.terminal.as_fd(), SetArg::TCSAFLUSH, &self.before);
        let _ = writeln!(&mut &*self.terminal);
    }
}

fn asked_for(user: &str) -> Result<String, Failure> {
    let terminal = std::fs::File::options().read(true).write(true).open("/dev/tty");
    let terminal = terminal.map_err(|_| {
        Failure::usage(format!("a password is needed: set {PASSWORD}, for there is no terminal to ask at"))
    })?;
    let cannot = |error: io::Error| Failure::host(format!("cannot ask for the password: {error}"));
    write!(&mut &terminal, "Password of {user}: ").map_err(cannot)?;
    let _unseen = Unseen::new(&terminal).map_err(|error| cannot(error.into()))?;
    let mut octets = Vec::new();
    for octet in io::BufReader::new(&terminal).bytes() {
        match octet.map_err(cannot)? {
            b'\r' | b'\n' => break,
            // Interrupt, end of input, quit.
            3 | 4 | 28 => return Err(Failure::usage("a password is needed")),
            8 | 127 => drop(octets.pop()),
            other if octets.len() < MOST_OCTETS => octets.push(other),
            _ => {}
        }
    }
    String::from_utf8(octets).map_err(|_| Failure::usage("the password is no UTF-8 text"))
}

/// No key has room for more.
const MOST_OCTETS: usize = 1_024;
