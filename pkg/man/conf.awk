# Makes the body of keydb.conf(5) of keydb.conf. What stands in comments above options is the text of
# these options; other comments are paragraphs; "##### Name" and "# ---- Name" are headings.

# paragraphs[1..count]; an option takes the last one.
function print_paragraphs(upto, i)
{
    for (i = 1; i <= upto; i++) {
        if (paragraphs[i] ~ /^    /) {
            sub(/^ +/, "", paragraphs[i])
            printf ".PP\n.RS\n.EX\n%s\n.EE\n.RE\n", roff(paragraphs[i])
        } else {
            printf ".PP\n%s", lines(paragraphs[i])
        }
    }
}

function lines(text, parts, count, i, out)
{
    count = split(text, parts, "\n")
    out = ""
    for (i = 1; i <= count; i++) {
        out = out roff(parts[i]) "\n"
    }
    return out
}

function flush()
{
    print_paragraphs(option_count ? count - 1 : count)
    if (option_count) {
        printf "%s", tags
        if (count) {
            printf "%s", lines(paragraphs[count])
        }
    }
    count = option_count = is_open = 0
    tags = ""
}

function take_option(line, is_set, at)
{
    at = index(line, " ")
    option_count++
    tags = tags (option_count == 1 ? ".TP\n" : ".TQ\n") "\\fB" roff(substr(line, 1, at - 1)) "\\fR " \
           roff(substr(line, at + 1)) (is_set ? "" : "  (an example: not set)") "\n"
}

function take_comment(text)
{
    if (option_count) {
        flush()
    }
    if (is_open) {
        paragraphs[count] = paragraphs[count] "\n" text
    } else {
        paragraphs[++count] = text
        is_open = 1
    }
}

/^##########/ || /^# ----/ {
    flush()
    sub(/^#+ (---- )?/, "")
    print ".SH " toupper(roff($0))
    next
}
/^$/ {
    flush()
    next
}
/^#$/ {
    is_open = 0
    next
}
/^# / {
    take_comment(substr($0, 3))
    next
}
/^#/ {
    take_option(substr($0, 2), 0)
    next
}
{
    take_option($0, 1)
}
END {
    flush()
}
