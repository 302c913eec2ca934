/* Keys out of the bytes a terminal sends: see key.h. */
#include "tools/cli/key.h"

#include <assert.h>
#include <string.h>

/* A longer escape sequence is none. */
#define KEY_SEQUENCE_MAX 16

#define ESC '\x1b'

struct sequence_row {
    const char *bytes; /* behind ESC */
    enum key_code code;
};

static const struct sequence_row sequence_rows[] = {
    {"[A", KEY_UP},
    {"[B", KEY_DOWN},
    {"[C", KEY_RIGHT},
    {"[D", KEY_LEFT},
    {"OA", KEY_UP},
    {"OB", KEY_DOWN},
    {"OC", KEY_RIGHT},
    {"OD", KEY_LEFT},
    {"[H", KEY_HOME},
    {"[F", KEY_END},
    {"OH", KEY_HOME},
    {"OF", KEY_END},
    {"[1~", KEY_HOME},
    {"[7~", KEY_HOME},
    {"[4~", KEY_END},
    {"[8~", KEY_END},
    {"[3~", KEY_DELETE},
    {"[Z", KEY_BACK_TAB},
    {"[1;5C", KEY_WORD_RIGHT},
    {"[1;5D", KEY_WORD_LEFT},
    {"[1;3C", KEY_WORD_RIGHT},
    {"[1;3D", KEY_WORD_LEFT},
    {"f", KEY_WORD_RIGHT},
    {"b", KEY_WORD_LEFT},
    {"d", KEY_KILL_WORD_RIGHT},
    {"[200~", KEY_PASTE_BEGIN},
    {"[201~", KEY_PASTE_END},
};

size_t key_utf8_length(const char *data, size_t len)
{
    assert(len > 0);
    unsigned char first = (unsigned char)data[0];
    size_t wanted = first >= 0xc2 && first < 0xe0   ? 2
                    : first >= 0xe0 && first < 0xf0 ? 3
                    : first >= 0xf0 && first < 0xf5 ? 4
                                                    : 1;
    for (size_t i = 1; i < wanted; i++) {
        if (i == len) {
            return 0;
        }
        if (((unsigned char)data[i] & 0xc0) != 0x80) {
            return 1;
        }
    }
    return wanted;
}

/* How long the sequence at data[0] == ESC is; 0 when its end is not there yet. */
static size_t sequence_length(const char *data, size_t len)
{
    if (len < 2) {
        return 0;
    }
    if (data[1] == 'O') {
        return len < 3 ? 0 : 3;
    }
    if (data[1] != '[') {
        return 2;
    }
    for (size_t i = 2; i < len && i < KEY_SEQUENCE_MAX; i++) {
        if (data[i] >= 0x40 && data[i] <= 0x7e) {
            return i + 1; /* ECMA-48: parameters are below, the final byte is here */
        }
    }
    return len < KEY_SEQUENCE_MAX ? 0 : KEY_SEQUENCE_MAX;
}

static size_t decode_sequence(const char *data, size_t len, bool final, struct key *out)
{
    size_t size = sequence_length(data, len);
    if (size == 0) {
        out->code = len == 1 ? KEY_ESCAPE : KEY_UNKNOWN;
        return final ? len : 0;
    }
    out->code = KEY_UNKNOWN;
    for (size_t i = 0; i < sizeof(sequence_rows) / sizeof(sequence_rows[0]); i++) {
        const char *bytes = sequence_rows[i].bytes;
        if (strlen(bytes) == size - 1 && memcmp(bytes, data + 1, size - 1) == 0) {
            out->code = sequence_rows[i].code;
        }
    }
    return size;
}

static bool decode_control(char c, struct key *out)
{
    switch (c) {
    case '\r':
    case '\n':
        out->code = KEY_ENTER;
        return true;
    case '\t':
        out->code = KEY_TAB;
        return true;
    case 0x7f:
    case '\b':
        out->code = KEY_BACKSPACE;
        return true;
    default:
        break;
    }
    if ((unsigned char)c < 0x20) {
        out->code = KEY_CONTROL;
        out->letter = (char)(c + '@');
        return true;
    }
    return false;
}

size_t key_decode(const char *data, size_t len, bool final, bool pasting, struct key *out)
{
    assert(len > 0);
    memset(out, 0, sizeof(*out));
    if (data[0] == ESC) {
        return decode_sequence(data, len, final, out);
    }
    bool line_end = data[0] == '\r' || data[0] == '\n';
    if ((!pasting || line_end) && decode_control(data[0], out)) {
        return 1;
    }
    size_t size = key_utf8_length(data, len);
    if (size == 0) {
        if (!final) {
            return 0;
        }
        size = 1;
    }
    out->code = KEY_TEXT;
    out->text = data;
    out->len = size;
    return size;
}
