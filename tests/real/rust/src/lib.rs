//! A module as users of the Rust binding write them: values of a type of its own, calls, a thread that answers, and a
//! call that waits. tests/real/test_rust.py.

use redis_module::native_types::RedisType;
use redis_module::{
    raw, redis_module, BlockedClient, CallOptionsBuilder, Context, FutureCallReply, NextArg, PromiseCallReply, RedisError,
    RedisResult, RedisString, RedisValue, ThreadSafeContext,
};
use std::os::raw::{c_int, c_void};
use std::thread;

struct Note {
    text: String,
    count: u64,
}

static NOTES: RedisType = RedisType::new(
    "rusticnot",
    1,
    raw::RedisModuleTypeMethods {
        version: raw::REDISMODULE_TYPE_METHOD_VERSION as u64,
        rdb_load: Some(load),
        rdb_save: Some(save),
        aof_rewrite: None,
        free: Some(free),
        mem_usage: None,
        digest: None,
        aux_load: None,
        aux_save: None,
        aux_save2: None,
        aux_save_triggers: 0,
        free_effort: None,
        unlink: None,
        copy: None,
        defrag: None,
        copy2: None,
        free_effort2: None,
        mem_usage2: None,
        unlink2: None,
    },
);

unsafe extern "C" fn load(io: *mut raw::RedisModuleIO, _version: c_int) -> *mut c_void {
    let (Ok(text), Ok(count)) = (raw::load_string(io), raw::load_unsigned(io)) else {
        return std::ptr::null_mut();
    };
    Box::into_raw(Box::new(Note { text: text.to_string(), count })).cast()
}

unsafe extern "C" fn save(io: *mut raw::RedisModuleIO, value: *mut c_void) {
    let note = &*value.cast::<Note>();
    raw::save_string(io, &note.text);
    raw::save_unsigned(io, note.count);
}

unsafe extern "C" fn free(value: *mut c_void) {
    drop(Box::from_raw(value.cast::<Note>()));
}

/// RU.NOTE key text: how often one was noted there.
fn note(ctx: &Context, args: Vec<RedisString>) -> RedisResult {
    let mut args = args.into_iter().skip(1);
    let (name, text) = (args.next_arg()?, args.next_string()?);
    let key = ctx.open_key_writable(&name);
    let count = match key.get_value::<Note>(&NOTES)? {
        Some(there) => {
            there.text = text;
            there.count += 1;
            there.count
        }
        None => {
            key.set_value(&NOTES, Note { text, count: 1 })?;
            1
        }
    };
    ctx.replicate_verbatim();
    Ok((count as i64).into())
}

/// RU.READ key
fn read(ctx: &Context, args: Vec<RedisString>) -> RedisResult {
    let name = args.into_iter().skip(1).next_arg()?;
    let key = ctx.open_key(&name);
    Ok(match key.get_value::<Note>(&NOTES)? {
        Some(there) => there.text.as_str().into(),
        None => RedisValue::Null,
    })
}

/// RU.CALL command word ...
fn call(ctx: &Context, args: Vec<RedisString>) -> RedisResult {
    if args.len() < 2 {
        return Err(RedisError::WrongArity);
    }
    let command = args[1].to_string();
    let words: Vec<&RedisString> = args[2..].iter().collect();
    ctx.call(&command, words.as_slice())
}

/// RU.LATER key: a thread increments it, and answers.
fn later(ctx: &Context, args: Vec<RedisString>) -> RedisResult {
    let name = args.into_iter().skip(1).next_string()?;
    let client = ctx.block_client();
    thread::spawn(move || {
        let of_thread = ThreadSafeContext::with_blocked_client(client);
        let result = {
            let locked = of_thread.lock();
            locked.call("INCR", &[name.as_str()])
        };
        of_thread.reply(result);
    });
    Ok(RedisValue::NoReply)
}

fn answer_when_it_comes(ctx: &Context, future: FutureCallReply, client: BlockedClient) {
    let handler = future.set_unblock_handler(move |_, reply| {
        let of_client = ThreadSafeContext::with_blocked_client(client);
        of_client.reply(reply.map_or_else(|error| Err(error.into()), |value| Ok((&value).into())));
    });
    handler.dispose(ctx);
}

/// RU.POP key seconds: BLPOP, and its reply when it comes.
fn pop(ctx: &Context, args: Vec<RedisString>) -> RedisResult {
    let mut args = args.into_iter().skip(1);
    let (name, seconds) = (args.next_string()?, args.next_string()?);
    let options = CallOptionsBuilder::new().replicate().build_blocking();
    match ctx.call_blocking("BLPOP", &options, &[name.as_str(), seconds.as_str()]) {
        PromiseCallReply::Resolved(reply) => reply.map_or_else(|error| Err(error.into()), |value| Ok((&value).into())),
        PromiseCallReply::Future(future) => {
            answer_when_it_comes(ctx, future, ctx.block_client());
            Ok(RedisValue::NoReply)
        }
    }
}

redis_module! {
    name: "rustic",
    version: 1,
    allocator: (redis_module::alloc::RedisAlloc, redis_module::alloc::RedisAlloc),
    data_types: [NOTES],
    commands: [
        ["ru.note", note, "write", 1, 1, 1],
        ["ru.read", read, "readonly", 1, 1, 1],
        ["ru.call", call, "", 0, 0, 0],
        ["ru.later", later, "write", 1, 1, 1],
        ["ru.pop", pop, "write", 1, 1, 1],
    ],
}
