#include "CDemoFiles.h"

#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char api_js[] = {
#embed "../Demo/Web/api.js"
};
static const unsigned char assistant_js[] = {
#embed "../Demo/Web/assistant.js"
};
static const unsigned char backoff_js[] = {
#embed "../Demo/Web/backoff.js"
};
static const unsigned char channel_js[] = {
#embed "../Demo/Web/channel.js"
};
static const unsigned char chat_css[] = {
#embed "../Demo/Web/chat.css"
};
static const unsigned char chat_js[] = {
#embed "../Demo/Web/chat.js"
};
static const unsigned char composer_js[] = {
#embed "../Demo/Web/composer.js"
};
static const unsigned char connection_js[] = {
#embed "../Demo/Web/connection.js"
};
static const unsigned char conversation_list_js[] = {
#embed "../Demo/Web/conversation-list.js"
};
static const unsigned char conversation_view_js[] = {
#embed "../Demo/Web/conversation-view.js"
};
static const unsigned char conversation_js[] = {
#embed "../Demo/Web/conversation.js"
};
static const unsigned char database_js[] = {
#embed "../Demo/Web/database.js"
};
static const unsigned char dom_js[] = {
#embed "../Demo/Web/dom.js"
};
static const unsigned char element_js[] = {
#embed "../Web/element.js"
};
static const unsigned char emitter_js[] = {
#embed "../Demo/Web/emitter.js"
};
static const unsigned char frames_js[] = {
#embed "../Demo/Web/frames.js"
};
static const unsigned char inbox_js[] = {
#embed "../Demo/Web/inbox.js"
};
static const unsigned char index_html[] = {
#embed "../Demo/Web/index.html"
};
static const unsigned char message_list_js[] = {
#embed "../Demo/Web/message-list.js"
};
static const unsigned char message_store_js[] = {
#embed "../Demo/Web/message-store.js"
};
static const unsigned char outbox_js[] = {
#embed "../Demo/Web/outbox.js"
};
static const unsigned char pane_js[] = {
#embed "../Demo/Web/pane.js"
};
static const unsigned char presence_js[] = {
#embed "../Demo/Web/presence.js"
};
static const unsigned char push_js[] = {
#embed "../Demo/Web/push.js"
};
static const unsigned char push_worker_js[] = {
#embed "../Demo/Web/push-worker.js"
};
static const unsigned char realtime_js[] = {
#embed "../Demo/Web/realtime.js"
};
static const unsigned char receipts_js[] = {
#embed "../Demo/Web/receipts.js"
};
static const unsigned char replies_js[] = {
#embed "../Demo/Web/replies.js"
};
static const unsigned char reply_js[] = {
#embed "../Demo/Web/reply.js"
};
static const unsigned char roost_svg[] = {
#embed "../Web/roost.svg"
};
static const unsigned char session_js[] = {
#embed "../Demo/Web/session.js"
};
static const unsigned char typing_js[] = {
#embed "../Demo/Web/typing.js"
};
static const unsigned char chat_sql[] = {
#embed "../Demo/SQL/chat.sql"
};
static const unsigned char api_sql[] = {
#embed "../Demo/SQL/api.sql"
};
static const unsigned char seed_sql[] = {
#embed "../Demo/SQL/seed.sql"
};
static const unsigned char assistant_sql[] = {
#embed "../Demo/SQL/assistant.sql"
};

static const struct roost_demo_file files[] = {
    {"api.js", api_js, sizeof api_js},
    {"assistant.js", assistant_js, sizeof assistant_js},
    {"backoff.js", backoff_js, sizeof backoff_js},
    {"channel.js", channel_js, sizeof channel_js},
    {"chat.css", chat_css, sizeof chat_css},
    {"chat.js", chat_js, sizeof chat_js},
    {"composer.js", composer_js, sizeof composer_js},
    {"connection.js", connection_js, sizeof connection_js},
    {"conversation-list.js", conversation_list_js, sizeof conversation_list_js},
    {"conversation-view.js", conversation_view_js, sizeof conversation_view_js},
    {"conversation.js", conversation_js, sizeof conversation_js},
    {"database.js", database_js, sizeof database_js},
    {"dom.js", dom_js, sizeof dom_js},
    {"element.js", element_js, sizeof element_js},
    {"emitter.js", emitter_js, sizeof emitter_js},
    {"frames.js", frames_js, sizeof frames_js},
    {"inbox.js", inbox_js, sizeof inbox_js},
    {"index.html", index_html, sizeof index_html},
    {"message-list.js", message_list_js, sizeof message_list_js},
    {"message-store.js", message_store_js, sizeof message_store_js},
    {"outbox.js", outbox_js, sizeof outbox_js},
    {"pane.js", pane_js, sizeof pane_js},
    {"presence.js", presence_js, sizeof presence_js},
    {"push.js", push_js, sizeof push_js},
    {"push-worker.js", push_worker_js, sizeof push_worker_js},
    {"realtime.js", realtime_js, sizeof realtime_js},
    {"receipts.js", receipts_js, sizeof receipts_js},
    {"replies.js", replies_js, sizeof replies_js},
    {"reply.js", reply_js, sizeof reply_js},
    {"roost.svg", roost_svg, sizeof roost_svg},
    {"session.js", session_js, sizeof session_js},
    {"typing.js", typing_js, sizeof typing_js},
    {"chat.sql", chat_sql, sizeof chat_sql},
    {"api.sql", api_sql, sizeof api_sql},
    {"seed.sql", seed_sql, sizeof seed_sql},
    {"assistant.sql", assistant_sql, sizeof assistant_sql},
};

const struct roost_demo_file *roost_demo_files(size_t *count) {
    *count = sizeof files / sizeof *files;
    return files;
}
