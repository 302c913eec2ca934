/* Keys out of the bytes a terminal sends (xterm's sequences, which all of today's send).
 *
 * State: none. */
#ifndef TOOLS_CLI_KEY_H
#define TOOLS_CLI_KEY_H

#include <stdbool.h>
#include <stddef.h>

enum key_code {
    KEY_TEXT, /* one character: `len` bytes of UTF-8, or one byte that is none */
    KEY_ENTER,
    KEY_TAB,
    KEY_BACK_TAB,
    KEY_ESCAPE,
    KEY_BACKSPACE,
    KEY_DELETE,
    KEY_LEFT,
    KEY_RIGHT,
    KEY_UP,
    KEY_DOWN,
    KEY_HOME,
    KEY_END,
    KEY_WORD_LEFT,
    KEY_WORD_RIGHT,
    KEY_KILL_WORD_RIGHT,
    KEY_CONTROL, /* `letter`, upper case */
    KEY_PASTE_BEGIN,
    KEY_PASTE_END,
    KEY_UNKNOWN, /* a sequence without a meaning here */
};

struct key {
    enum key_code code;
    char letter;
    const char *text; /* TEXT: inside the bytes given to key_decode() */
    size_t len;
};

/* Decodes the first key of data[0, len), len > 0. Returns how many bytes it took, or 0 when more
 * are needed to tell. `final`: no more will come soon, so that a lone ESC is the Escape key.
 * `pasting`: between PASTE_BEGIN and PASTE_END, where control characters other than line ends are
 * text. */
size_t key_decode(const char *data, size_t len, bool final, bool pasting, struct key *out);

/* The number of bytes of the UTF-8 character that data[0, len) starts with (len > 0): 1 to 4, and
 * 1 for a byte that starts none. 0 when the bytes end inside of what may be one. */
size_t key_utf8_length(const char *data, size_t len);

#endif
