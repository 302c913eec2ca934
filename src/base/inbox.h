/* A thread's inbox: many senders, one receiver. Messages are intrusive nodes in an atomic stack
 * that the receiver takes whole and reverses, so each sender's order is kept. A post to an empty
 * inbox wakes the receiver through an eventfd; posts to a filled one cost one compare-and-swap and
 * no system call. State: atomic (head), the rest belongs to the receiver. */
#ifndef BASE_INBOX_H
#define BASE_INBOX_H

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>

struct inbox_message {
    struct inbox_message *next;
    /* Runs on the receiver's thread with the message, which it owns from then on. */
    void (*receive)(struct inbox_message *message, void *receiver);
};

struct inbox {
    _Atomic(struct inbox_message *) head;
    int event_fd; /* readable when something came; for the receiver's event loop */
};

/* Makes an empty inbox; aborts when the system has no eventfd to give (boot time). */
void inbox_init(struct inbox *in);
/* Closes it; messages still inside are the caller's fault (asserted). */
void inbox_deinit(struct inbox *in);
/* Hands `message_take` over. Any thread, any lock held; never blocks. */
void inbox_post_take(struct inbox *in, struct inbox_message *message_take);
/* In a forked child, which has neither the receivers nor their eventfds: from now on messages stay
 * where they are put, and nobody is woken. */
void inbox_mute_all(void);
/* Receiver only: runs every message that has come; returns how many. `receiver` is passed on. */
int inbox_receive(struct inbox *in, void *receiver);
/* Receiver only: true when something waits (one relaxed load). */
bool inbox_waiting(const struct inbox *in);

#endif
