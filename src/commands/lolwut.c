/* LOLWUT: a small picture, new each time, and the version below it. Ours is a key rain: columns of
 * falling letters over a ground line. */
#include "commands/lolwut.h"
#include "base/rand.h"
#include "base/version.h"

#define LOLWUT_COLUMNS 48
#define LOLWUT_ROWS 9

void lolwut_draw(struct buf *out)
{
    static const char drops[] = {'k', 'e', 'y', 'd', 'b'};
    int head[LOLWUT_COLUMNS], tail[LOLWUT_COLUMNS];
    for (int x = 0; x < LOLWUT_COLUMNS; x++) {
        head[x] = (int)rand_below(2 * LOLWUT_ROWS);
        tail[x] = head[x] - 1 - (int)rand_below(sizeof(drops));
    }
    for (int y = 0; y < LOLWUT_ROWS; y++) {
        for (int x = 0; x < LOLWUT_COLUMNS; x++) {
            bool wet = y <= head[x] && y > tail[x];
            buf_append_char(out, wet ? drops[(head[x] - y) % (int)sizeof(drops)] : ' ');
        }
        buf_append_char(out, '\n');
    }
    for (int x = 0; x < LOLWUT_COLUMNS; x++) {
        buf_append_char(out, x % 4 ? '_' : '.');
    }
    buf_append_cstr(out, "\n\nKeyDB ver. " KEYDB_VERSION "\nRedis ver. " REDIS_COMPAT_VERSION "\n");
}
