//! `$batch`: entity group transactions, and the form with a single query.

use super::changes::{self, Answer, Draft, Refused};
use super::{Context, entities};
use crate::bounds::Share;
use crate::header_name;
use crate::negotiate;
use crate::operation::Operation;
use crate::reply::{Failure, Form, Prefer, Reply};
use crate::request::{Message, PartMessage};
use partita_model::{Layer, Records, ServiceError};
use partita_wire::batch::{Batch, Part, PartReply, parse, response_content_type, write};
use partita_wire::entity_json::Metadata;

pub(crate) async fn run(ctx: &Context<'_>, message: &Message<'_>) -> Result<Reply, ServiceError> {
    let content_type = message.header(header_name::CONTENT_TYPE).unwrap_or_default();
    let batch = parse(content_type, message.body)?;
    let is_query = matches!(batch, Batch::Query(_));
    let Answered { parts, share, misses_table } = match &batch {
        Batch::ChangeSet(_) if ctx.address.secondary => return Err(ServiceError::SecondaryWrite),
        Batch::ChangeSet(parts) => change_set(ctx, parts).await,
        Batch::Query(part) => query(ctx, part).await,
    };
    let batch_boundary = format!("batchresponse_{}", ctx.ids.next());
    let changeset_boundary = format!("changesetresponse_{}", ctx.ids.next());
    let body = write(&parts, is_query, &batch_boundary, &changeset_boundary);
    Ok(Reply { share, misses_table, ..Reply::json(202).body(response_content_type(&batch_boundary), body) })
}

/// The parts of an answer.
#[derive(Default)]
struct Answered<'a> {
    parts: Vec<PartReply<'a>>,
    /// What they have of the memory for responses, if that was seen to already.
    share: Option<Share>,
    /// Whether they say that a table was not found.
    misses_table: bool,
}

async fn change_set<'a>(ctx: &Context<'_>, parts: &'a [Part<'_>]) -> Answered<'a> {
    if parts.is_empty() {
        return Answered::default();
    }
    match apply(ctx, parts).await {
        Ok(parts) => Answered { parts, ..Answered::default() },
        Err((refused, prefer)) => {
            // The store does not know of change sets: its errors carry an index only where there is a choice.
            let index = (parts.len() > 1 || refused.error.layer() != Layer::Store).then_some(refused.index);
            let part = error_part(ctx, &parts[refused.index], &refused.error, index, prefer);
            let misses_table = refused.error == ServiceError::TableNotFound;
            Answered { parts: vec![part], share: None, misses_table }
        }
    }
}

/// Applies a change set; an error is what it was refused for and what its answer would have preferred.
async fn apply<'a>(ctx: &Context<'_>, parts: &'a [Part<'_>]) -> Result<Vec<PartReply<'a>>, (Refused, Option<Prefer>)> {
    let mut drafts: Vec<Draft> = Vec::with_capacity(parts.len());
    let mut records = Records::with_capacity(parts.iter().map(|part| part.body.len()).sum());
    for (index, part) in parts.iter().enumerate() {
        let draft = PartMessage::read(part, ctx.address).and_then(|part| {
            ctx.access.check_part(&part.operation)?;
            changes::draft(ctx, &part.message(), &mut records, drafts.last())
        });
        drafts.push(draft.map_err(|error| (Refused { index, error }, None))?);
    }
    let answers: Vec<_> = drafts.iter().map(|draft| draft.answer).collect();
    let replies = changes::apply(ctx, drafts, records).await.map_err(|refused| {
        let prefer = answers[refused.index].prefer;
        (refused, prefer)
    })?;
    let replies = replies.into_iter().zip(answers).zip(parts);
    let part = |((reply, answer), part): ((Reply, Answer), &'a Part<'_>)| {
        reply.into_part(answer.data_service_version(), part.content_id.as_deref())
    };
    Ok(replies.map(part).collect())
}

async fn query<'a>(ctx: &Context<'_>, part: &'a Part<'_>) -> Answered<'a> {
    match read(ctx, part).await {
        Ok(mut reply) => {
            let share = reply.share.take();
            Answered { parts: vec![reply.into_part("3.0;", part.content_id.as_deref())], share, misses_table: false }
        }
        Err(error) => {
            let misses_table = error == ServiceError::TableNotFound;
            Answered { parts: vec![error_part(ctx, part, &error, Some(0), None)], share: None, misses_table }
        }
    }
}

async fn read(ctx: &Context<'_>, part: &Part<'_>) -> Result<Reply, ServiceError> {
    let part = PartMessage::read(part, ctx.address)?;
    ctx.access.check_part(&part.operation)?;
    let message = part.message();
    match message.operation {
        Operation::GetEntity { table, keys } => entities::get(ctx, &message, table, keys).await,
        Operation::QueryEntities { table } => entities::query(ctx, &message, table).await,
        _ => Err(ServiceError::NotImplemented),
    }
}

fn error_part<'a>(
    ctx: &Context<'_>,
    part: &'a Part<'_>,
    error: &ServiceError,
    index: Option<usize>,
    prefer: Option<Prefer>,
) -> PartReply<'a> {
    let metadata = PartMessage::read(part, ctx.address)
        .and_then(|part| negotiate::metadata(part.query.get("$format"), part.headers))
        .unwrap_or(Metadata::Minimal);
    let failure = Failure { error, index, prefer, request_id: ctx.request_id, time: ctx.now };
    failure.render(Form::Json(metadata)).into_part("3.0;", part.content_id.as_deref())
}
