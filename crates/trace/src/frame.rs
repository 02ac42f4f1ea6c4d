//! Frames: one run's head, one exchange, one run's end.

use narrows_probe::Refusal;
use narrows_probe::probes::{CaptureReport, LoadReport, TcpMarks, TransferReport};
use narrows_units::{Sender, Stamp};
use serde::{Deserialize, Serialize};

use crate::error::WriteError;
use crate::header::Header;
use crate::rows::TrainForm;
use crate::run::{Answer, End, Exchange, Request};
use crate::sane;

/// Largest frame, and so the largest exchange: ours, several million rows.
pub(crate) const MAX_FRAME: usize = 64 << 20;

/// Octets in front of a frame's body: its kind, and its length.
pub(crate) const FRAME_HEAD: usize = 5;

const HEADER: u8 = 1;
const EXCHANGE: u8 = 2;
const END: u8 = 3;

/// What a block holds.
#[derive(Debug)]
pub(crate) enum Frame {
    Header(Box<Header>),
    Exchange(Exchange),
    End(Box<End>),
    /// Of a kind that a later program may write.
    Unknown,
}

#[derive(Serialize, Deserialize)]
struct ExchangeForm {
    first_read: Stamp<Sender>,
    last_read: Stamp<Sender>,
    asked: Request,
    answer: AnswerForm,
}

#[derive(Serialize, Deserialize)]
enum AnswerForm {
    Train(TrainForm),
    Load(LoadReport),
    Transfer(TransferReport),
    Capture(CaptureReport),
    TimerFired,
    Refused(Refusal),
    Fault(String),
}

pub(crate) fn header(header: &Header) -> Result<Vec<u8>, WriteError> {
    frame(HEADER, &serde_json::to_vec(header).map_err(unwritable)?)
}

pub(crate) fn exchange(exchange: &Exchange) -> Result<Vec<u8>, WriteError> {
    let form = ExchangeForm {
        first_read: exchange.read.0,
        last_read: exchange.read.1,
        asked: exchange.asked.clone(),
        answer: match &exchange.answer {
            Answer::Train(report) => AnswerForm::Train(report.into()),
            Answer::Load(report) => AnswerForm::Load(report.clone()),
            Answer::Transfer(report) => AnswerForm::Transfer(report.clone()),
            Answer::Capture(report) => AnswerForm::Capture(report.clone()),
            Answer::TimerFired => AnswerForm::TimerFired,
            Answer::Refused(refusal) => AnswerForm::Refused(*refusal),
            Answer::Fault(text) => AnswerForm::Fault(text.clone()),
        },
    };
    let mut body = postcard::to_stdvec(&form).map_err(unwritable)?;
    if let Answer::Transfer(report) = &exchange.answer {
        body.extend(marks(report)?);
    }
    if let Answer::Load(report) = &exchange.answer
        && !report.held_up.is_zero()
    {
        body.extend(postcard::to_stdvec(&report.held_up).map_err(unwritable)?);
    }
    frame(EXCHANGE, &body)
}

/// What follows an exchange that is a transfer's, if its samples say anything there: their marks,
/// stream by stream. Readers that do not know of them do not look behind the exchange.
fn marks(report: &TransferReport) -> Result<Vec<u8>, WriteError> {
    let marks: Vec<Vec<TcpMarks>> =
        report.streams.iter().map(|stream| stream.samples.iter().map(|sample| sample.marks).collect()).collect();
    if marks.iter().flatten().all(|marks| *marks == TcpMarks::default()) {
        return Ok(Vec::new());
    }
    postcard::to_stdvec(&marks).map_err(unwritable)
}

/// Puts back what [`marks`] wrote; `None` if it does not fit the samples.
fn mark(report: &mut TransferReport, octets: &[u8]) -> Option<()> {
    if octets.is_empty() {
        return Some(());
    }
    let marks: Vec<Vec<TcpMarks>> = postcard::from_bytes(octets).ok()?;
    if marks.len() != report.streams.len() {
        return None;
    }
    for (stream, marks) in report.streams.iter_mut().zip(marks) {
        if stream.samples.len() != marks.len() {
            return None;
        }
        for (sample, marks) in stream.samples.iter_mut().zip(marks) {
            sample.marks = marks;
        }
    }
    Some(())
}

pub(crate) fn end(end: &End) -> Result<Vec<u8>, WriteError> {
    frame(END, &serde_json::to_vec(end).map_err(unwritable)?)
}

fn unwritable(error: impl std::fmt::Display) -> WriteError {
    WriteError::Unwritable(error.to_string())
}

fn frame(kind: u8, body: &[u8]) -> Result<Vec<u8>, WriteError> {
    let too_large = || WriteError::TooLarge { octets: body.len(), most: MAX_FRAME };
    if body.len() > MAX_FRAME {
        return Err(too_large());
    }
    let length = u32::try_from(body.len()).map_err(|_| too_large())?;
    let mut frame = Vec::with_capacity(FRAME_HEAD + body.len());
    frame.push(kind);
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(body);
    Ok(frame)
}

/// The first frame of `octets`, and what follows it; `Err` says what is wrong with it.
pub(crate) fn split(octets: &[u8]) -> Result<(Frame, &[u8]), &'static str> {
    let (head, rest) = octets.split_at_checked(FRAME_HEAD).ok_or("a frame is cut")?;
    let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
    let length = usize::try_from(length).map_err(|_| "a frame is too long")?;
    let (body, rest) = rest.split_at_checked(length).ok_or("a frame is cut")?;
    let frame = match head[0] {
        HEADER => {
            let header = serde_json::from_slice(body).map_err(|_| "a run's head cannot be read")?;
            sane::header(&header)?;
            Frame::Header(Box::new(header))
        }
        EXCHANGE => {
            let exchange = read_exchange(body).ok_or("an exchange cannot be read")?;
            sane::exchange(&exchange)?;
            Frame::Exchange(exchange)
        }
        END => {
            let end = serde_json::from_slice(body).map_err(|_| "a run's end cannot be read")?;
            sane::end(&end)?;
            Frame::End(Box::new(end))
        }
        _ => Frame::Unknown,
    };
    Ok((frame, rest))
}

fn read_exchange(body: &[u8]) -> Option<Exchange> {
    let (mut form, rest): (ExchangeForm, &[u8]) = postcard::take_from_bytes(body).ok()?;
    if let AnswerForm::Transfer(report) = &mut form.answer {
        mark(report, rest)?;
    }
    if let AnswerForm::Load(report) = &mut form.answer
        && !rest.is_empty()
    {
        report.held_up = postcard::from_bytes(rest).ok()?;
    }
    Some(Exchange {
        read: (form.first_read, form.last_read),
        asked: form.asked,
        answer: match form.answer {
            AnswerForm::Train(report) => Answer::Train(report.into()),
            AnswerForm::Load(report) => Answer::Load(report),
            AnswerForm::Transfer(report) => Answer::Transfer(report),
            AnswerForm::Capture(report) => Answer::Capture(report),
            AnswerForm::TimerFired => Answer::TimerFired,
            AnswerForm::Refused(refusal) => Answer::Refused(refusal),
            AnswerForm::Fault(text) => Answer::Fault(text),
        },
    })
}
