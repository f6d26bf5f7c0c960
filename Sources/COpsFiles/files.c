#include "COpsFiles.h"

#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char access_js[] = {
#embed "../Ops/Web/access.js"
};
static const unsigned char alerts_js[] = {
#embed "../Ops/Web/alerts.js"
};
static const unsigned char channel_js[] = {
#embed "../Ops/Web/channel.js"
};
static const unsigned char channels_js[] = {
#embed "../Ops/Web/channels.js"
};
static const unsigned char cluster_js[] = {
#embed "../Ops/Web/cluster.js"
};
static const unsigned char configuration_js[] = {
#embed "../Ops/Web/configuration.js"
};
static const unsigned char confirm_js[] = {
#embed "../Ops/Web/confirm.js"
};
static const unsigned char connection_js[] = {
#embed "../Ops/Web/connection.js"
};
static const unsigned char dashboard_css[] = {
#embed "../Ops/Web/dashboard.css"
};
static const unsigned char dashboard_html[] = {
#embed "../Ops/Web/dashboard.html"
};
static const unsigned char dashboard_js[] = {
#embed "../Ops/Web/dashboard.js"
};
static const unsigned char dom_js[] = {
#embed "../Ops/Web/dom.js"
};
static const unsigned char element_js[] = {
#embed "../Web/element.js"
};
static const unsigned char format_js[] = {
#embed "../Ops/Web/format.js"
};
static const unsigned char hints_js[] = {
#embed "../Ops/Web/hints.js"
};
static const unsigned char log_js[] = {
#embed "../Ops/Web/log.js"
};
static const unsigned char overview_js[] = {
#embed "../Ops/Web/overview.js"
};
static const unsigned char plot_js[] = {
#embed "../Ops/Web/plot.js"
};
static const unsigned char roost_svg[] = {
#embed "../Web/roost.svg"
};
static const unsigned char socket_js[] = {
#embed "../Ops/Web/socket.js"
};
static const unsigned char sockets_js[] = {
#embed "../Ops/Web/sockets.js"
};
static const unsigned char store_js[] = {
#embed "../Ops/Web/store.js"
};
static const unsigned char stream_js[] = {
#embed "../Ops/Web/stream.js"
};
static const unsigned char streams_js[] = {
#embed "../Ops/Web/streams.js"
};
static const unsigned char table_js[] = {
#embed "../Ops/Web/table.js"
};
static const unsigned char user_js[] = {
#embed "../Ops/Web/user.js"
};

static const struct roost_ops_file files[] = {
    {"access.js", access_js, sizeof access_js},
    {"alerts.js", alerts_js, sizeof alerts_js},
    {"channel.js", channel_js, sizeof channel_js},
    {"channels.js", channels_js, sizeof channels_js},
    {"cluster.js", cluster_js, sizeof cluster_js},
    {"configuration.js", configuration_js, sizeof configuration_js},
    {"confirm.js", confirm_js, sizeof confirm_js},
    {"connection.js", connection_js, sizeof connection_js},
    {"dashboard.css", dashboard_css, sizeof dashboard_css},
    {"dashboard.html", dashboard_html, sizeof dashboard_html},
    {"dashboard.js", dashboard_js, sizeof dashboard_js},
    {"dom.js", dom_js, sizeof dom_js},
    {"element.js", element_js, sizeof element_js},
    {"format.js", format_js, sizeof format_js},
    {"hints.js", hints_js, sizeof hints_js},
    {"log.js", log_js, sizeof log_js},
    {"overview.js", overview_js, sizeof overview_js},
    {"plot.js", plot_js, sizeof plot_js},
    {"roost.svg", roost_svg, sizeof roost_svg},
    {"socket.js", socket_js, sizeof socket_js},
    {"sockets.js", sockets_js, sizeof sockets_js},
    {"store.js", store_js, sizeof store_js},
    {"stream.js", stream_js, sizeof stream_js},
    {"streams.js", streams_js, sizeof streams_js},
    {"table.js", table_js, sizeof table_js},
    {"user.js", user_js, sizeof user_js},
};

const struct roost_ops_file *roost_ops_files(size_t *count) {
    *count = sizeof files / sizeof *files;
    return files;
}
