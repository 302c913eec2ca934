/* The log: one line, one write(2). A line is put together on the stack. */
#include "base/log.h"

#include "base/file.h"
#include "base/log_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Longest message, as in Redis, and the line made of it: each byte may become \xHH. */
#define LOG_MESSAGE_BYTES 1024
#define LOG_LINE_BYTES (LOG_MESSAGE_BYTES * 4 + 128)

static _Atomic int current_level = LOG_NOTICE;
static _Atomic char current_role = 'M';
static _Atomic long utc_offset_s;

/* World state, see log.h. */
static char file_path[PATH_MAX];
static bool to_syslog;

/* A line under construction. */
struct log_line {
    char text[LOG_LINE_BYTES];
    size_t len;
};

static void log_put(struct log_line *line, char c)
{
    if (line->len < sizeof(line->text)) {
        line->text[line->len++] = c;
    }
}

static void log_put_text(struct log_line *line, const char *text)
{
    while (*text != '\0') {
        log_put(line, *text++);
    }
}

/* `value` in decimal, padded to `width` digits with `pad`. */
static void log_put_number(struct log_line *line, uint64_t value, int width, char pad)
{
    char digits[20];
    int count = 0;
    do {
        digits[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    for (int i = count; i < width; i++) {
        log_put(line, pad);
    }
    while (count > 0) {
        log_put(line, digits[--count]);
    }
}

static void log_put_escaped(struct log_line *line, const char *message, size_t len)
{
    static const char hex[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)message[i];
        if (c >= 0x20 && c < 0x7f) {
            log_put(line, (char)c);
        } else {
            log_put_text(line, (char[]){'\\', 'x', hex[c >> 4], hex[c & 15], '\0'});
        }
    }
}

static const char *const month_names[12] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

struct log_time {
    unsigned year, month, day; /* month 0..11 */
    unsigned hour, minute, second, millisecond;
};

/* The local time. Done by hand since localtime_r() takes a lock of libc, which a forked child may
 * inherit held. Days to date as in "chrono-Compatible Low-Level Date Algorithms" (H. Hinnant):
 * years start in March, so that the leap day is the last one, and 400 years are one cycle. */
static struct log_time log_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    long offset = atomic_load_explicit(&utc_offset_s, memory_order_relaxed);
    uint64_t seconds = (uint64_t)(now.tv_sec + offset);
    uint64_t days = seconds / 86400 + 719468; /* since 1 March of year 0 */
    unsigned rest = (unsigned)(seconds % 86400);
    uint64_t cycle = days / 146097;
    unsigned day_of_cycle = (unsigned)(days % 146097);
    unsigned year_of_cycle =
        (day_of_cycle - day_of_cycle / 1460 + day_of_cycle / 36524 - day_of_cycle / 146096) / 365;
    unsigned day_of_year =
        day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    unsigned month_from_march = (5 * day_of_year + 2) / 153;
    unsigned month = (month_from_march + 2) % 12;
    return (struct log_time){
        .year = (unsigned)(cycle * 400) + year_of_cycle + (month < 2),
        .month = month,
        .day = day_of_year - (153 * month_from_march + 2) / 5 + 1,
        .hour = rest / 3600,
        .minute = rest / 60 % 60,
        .second = rest % 60,
        .millisecond = (unsigned)(now.tv_nsec / 1000000),
    };
}

static void log_put_clock(struct log_line *line, const struct log_time *t)
{
    log_put_number(line, t->hour, 2, '0');
    log_put(line, ':');
    log_put_number(line, t->minute, 2, '0');
    log_put(line, ':');
    log_put_number(line, t->second, 2, '0');
}

int log_raw_open(void)
{
    return file_path[0] == '\0' ? STDOUT_FILENO
                                : open(file_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
}

void log_raw_close(int fd)
{
    if (fd != STDOUT_FILENO) {
        close(fd);
    }
}

void log_raw(const char *bytes, size_t len)
{
    int fd = log_raw_open();
    if (fd >= 0) {
        /* Best effort: there is nobody left to tell that the log cannot be written. */
        int ignored = file_write_all(fd, slice_of(bytes, len));
        (void)ignored;
        log_raw_close(fd);
    }
}

static void log_to_file(const char *message, size_t len, enum log_level level)
{
    static const char marks[] = {'.', '-', '*', '#'};
    struct log_time now = log_now();
    struct log_line line;
    line.len = 0;
    log_put_number(&line, (uint64_t)getpid(), 1, ' ');
    log_put(&line, ':');
    log_put(&line, atomic_load_explicit(&current_role, memory_order_relaxed));
    log_put(&line, ' ');
    log_put_number(&line, now.day, 2, '0');
    log_put(&line, ' ');
    log_put_text(&line, month_names[now.month]);
    log_put(&line, ' ');
    log_put_number(&line, now.year, 4, '0');
    log_put(&line, ' ');
    log_put_clock(&line, &now);
    log_put(&line, '.');
    log_put_number(&line, now.millisecond, 3, '0');
    log_put(&line, ' ');
    log_put(&line, marks[level]);
    log_put(&line, ' ');
    log_put_escaped(&line, message, len);
    log_put(&line, '\n');
    log_raw(line.text, line.len);
}

void log_in_handler(const char *message)
{
    if ((int)LOG_WARNING >= atomic_load_explicit(&current_level, memory_order_relaxed)) {
        log_to_file(message, strlen(message), LOG_WARNING);
    }
}

void log_write(enum log_level level, const char *format, ...)
{
    if ((int)level < atomic_load_explicit(&current_level, memory_order_relaxed)) {
        return;
    }
    static const int severities[] = {7, 6, 5, 4}; /* RFC 5424: debug, info, notice, warning */
    int saved_errno = errno;
    char message[LOG_MESSAGE_BYTES + 1];
    va_list args;
    va_start(args, format);
    int printed = vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    if (printed >= 0) {
        size_t len = (size_t)printed < sizeof(message) ? (size_t)printed : sizeof(message) - 1;
        log_to_file(message, len, level);
        if (to_syslog) {
            log_syslog_send(severities[level], message);
        }
    }
    errno = saved_errno;
}

void log_setup(void)
{
    time_t now = time(NULL);
    struct tm local;
    tzset();
    if (localtime_r(&now, &local) != NULL) {
        atomic_store_explicit(&utc_offset_s, local.tm_gmtoff, memory_order_relaxed);
    }
}

void log_set_level(enum log_level level)
{
    atomic_store_explicit(&current_level, (int)level, memory_order_relaxed);
}

enum log_level log_level(void)
{
    return (enum log_level)atomic_load_explicit(&current_level, memory_order_relaxed);
}

bool log_set_file(const char *path)
{
    size_t len = strlen(path);
    if (len >= sizeof(file_path)) {
        errno = ENAMETOOLONG;
        return false;
    }
    if (len > 0) {
        int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
        if (fd < 0) {
            return false;
        }
        close(fd);
    }
    memcpy(file_path, path, len + 1);
    return true;
}

void log_set_syslog(bool enabled, const char *ident, int facility)
{
    to_syslog = false;
    if (enabled) {
        log_syslog_open(ident, facility);
    } else {
        log_syslog_close();
    }
    to_syslog = enabled;
}

void log_set_role(char role)
{
    atomic_store_explicit(&current_role, role, memory_order_relaxed);
}
