/* Inboxes: an atomic stack of messages and an eventfd.
 *
 * Who wakes: the sender whose message finds the stack empty writes the eventfd, and it writes after
 * its push. The receiver empties the eventfd before it takes the stack. So a message that is not in
 * what the receiver took was pushed after the take, onto an empty stack (or on top of one whose
 * first sender wakes): its wake-up comes after the receiver's read and is still there to be seen. A
 * wake-up for a message that was already taken is possible and harmless. */
#include "base/inbox.h"

#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

void inbox_init(struct inbox *in)
{
    atomic_init(&in->head, NULL);
    in->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (in->event_fd < 0) {
        log_warning("Cannot make an eventfd: %s", strerror(errno));
        abort();
    }
}

void inbox_deinit(struct inbox *in)
{
    assert(atomic_load_explicit(&in->head, memory_order_acquire) == NULL);
    close(in->event_fd);
    in->event_fd = -1;
}

static bool muted; /* inbox_mute_all; written while there is one thread */

void inbox_mute_all(void)
{
    muted = true;
}

static void inbox_wake(struct inbox *in)
{
    uint64_t one = 1;
    ssize_t written;
    do {
        written = write(in->event_fd, &one, sizeof(one));
    } while (written < 0 && errno == EINTR);
    /* EAGAIN: the counter is full, so the receiver is being woken already. */
    assert(written == sizeof(one) || errno == EAGAIN);
}

void inbox_post_take(struct inbox *in, struct inbox_message *message_take)
{
    assert(message_take->receive != NULL);
    struct inbox_message *head = atomic_load_explicit(&in->head, memory_order_relaxed);
    do {
        message_take->next = head;
        /* Release: the receiver's acquiring take sees the message's content. */
    } while (!atomic_compare_exchange_weak_explicit(&in->head, &head, message_take,
                                                    memory_order_release, memory_order_relaxed));
    /* From here on the message is the receiver's and may be gone. */
    if (head == NULL && likely(!muted)) {
        inbox_wake(in);
    }
}

/* Turns a stack (newest first) into a list (oldest first). */
static struct inbox_message *inbox_reverse(struct inbox_message *stack)
{
    struct inbox_message *list = NULL;
    while (stack != NULL) {
        struct inbox_message *next = stack->next;
        stack->next = list;
        list = stack;
        stack = next;
    }
    return list;
}

int inbox_receive(struct inbox *in, void *receiver)
{
    uint64_t wakes;
    ssize_t got;
    do {
        got = read(in->event_fd, &wakes, sizeof(wakes));
    } while (got < 0 && errno == EINTR);
    assert(got == sizeof(wakes) || errno == EAGAIN);

    struct inbox_message *stack = atomic_exchange_explicit(&in->head, NULL, memory_order_acquire);
    struct inbox_message *message = inbox_reverse(stack);
    int count = 0;
    while (message != NULL) {
        struct inbox_message *next = message->next; /* the message may free itself */
        message->receive(message, receiver);
        message = next;
        count++;
    }
    return count;
}

bool inbox_waiting(const struct inbox *in)
{
    return atomic_load_explicit(&in->head, memory_order_relaxed) != NULL;
}
