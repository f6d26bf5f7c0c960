#include "CSQLFiles.h"

#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char CaptureDoctor[] = {
#embed "../Administration/SQL/CaptureDoctor.sql"
};
static const unsigned char ClientRoles[] = {
#embed "../Administration/SQL/ClientRoles.sql"
};
static const unsigned char Doctor[] = {
#embed "../Administration/SQL/Doctor.sql"
};
static const unsigned char Locks[] = {
#embed "../Administration/SQL/Locks.sql"
};
static const unsigned char Publishing[] = {
#embed "../Administration/SQL/Publishing.sql"
};
static const unsigned char Watching[] = {
#embed "../Administration/SQL/Watching.sql"
};
static const unsigned char Capture[] = {
#embed "../Capture/SQL/Capture.sql"
};
static const unsigned char Authority[] = {
#embed "../ChangeFeed/SQL/Authority.sql"
};
static const unsigned char Catalog[] = {
#embed "../ChangeFeed/SQL/Catalog.sql"
};
static const unsigned char Epochs[] = {
#embed "../ChangeFeed/SQL/Epochs.sql"
};
static const unsigned char Feed[] = {
#embed "../ChangeFeed/SQL/Feed.sql"
};
static const unsigned char Losses[] = {
#embed "../ChangeFeed/SQL/Losses.sql"
};
static const unsigned char Members[] = {
#embed "../ChangeFeed/SQL/Members.sql"
};
static const unsigned char Policies[] = {
#embed "../ChangeFeed/SQL/Policies.sql"
};
static const unsigned char Recovery[] = {
#embed "../ChangeFeed/SQL/Recovery.sql"
};
static const unsigned char Rows[] = {
#embed "../ChangeFeed/SQL/Rows.sql"
};
static const unsigned char SessionList[] = {
#embed "../ChangeFeed/SQL/SessionList.sql"
};
static const unsigned char Window[] = {
#embed "../ChangeFeed/SQL/Window.sql"
};
static const unsigned char Sessions[] = {
#embed "../Postgres/SQL/Sessions.sql"
};
static const unsigned char InstallClaims[] = {
#embed "../Schema/SQL/InstallClaims.sql"
};
static const unsigned char InstallMessageTrigger[] = {
#embed "../Schema/SQL/InstallMessageTrigger.sql"
};
static const unsigned char InstallRealtime[] = {
#embed "../Schema/SQL/InstallRealtime.sql"
};
static const unsigned char Migration001Outbox[] = {
#embed "../Schema/SQL/Migration001Outbox.sql"
};
static const unsigned char Migration002Triggers[] = {
#embed "../Schema/SQL/Migration002Triggers.sql"
};
static const unsigned char Migration003Messages[] = {
#embed "../Schema/SQL/Migration003Messages.sql"
};
static const unsigned char Migration004Scopes[] = {
#embed "../Schema/SQL/Migration004Scopes.sql"
};
static const unsigned char Migration005Recovery[] = {
#embed "../Schema/SQL/Migration005Recovery.sql"
};
static const unsigned char Migration006Ring[] = {
#embed "../Schema/SQL/Migration006Ring.sql"
};
static const unsigned char Migration007Presence[] = {
#embed "../Schema/SQL/Migration007Presence.sql"
};
static const unsigned char Migration008Push[] = {
#embed "../Schema/SQL/Migration008Push.sql"
};
static const unsigned char Migration009Sessions[] = {
#embed "../Schema/SQL/Migration009Sessions.sql"
};
static const unsigned char Migration010Epochs[] = {
#embed "../Schema/SQL/Migration010Epochs.sql"
};
static const unsigned char Migration011Rows[] = {
#embed "../Schema/SQL/Migration011Rows.sql"
};
static const unsigned char Migration012Losses[] = {
#embed "../Schema/SQL/Migration012Losses.sql"
};
static const unsigned char Migration013Order[] = {
#embed "../Schema/SQL/Migration013Order.sql"
};
static const unsigned char Migration014Capture[] = {
#embed "../Schema/SQL/Migration014Capture.sql"
};
static const unsigned char Migration015Scopes[] = {
#embed "../Schema/SQL/Migration015Scopes.sql"
};
static const unsigned char Migration016Watched[] = {
#embed "../Schema/SQL/Migration016Watched.sql"
};
static const unsigned char Migration017Streams[] = {
#embed "../Schema/SQL/Migration017Streams.sql"
};
static const unsigned char Migration018Cluster[] = {
#embed "../Schema/SQL/Migration018Cluster.sql"
};
static const unsigned char Migration019Places[] = {
#embed "../Schema/SQL/Migration019Places.sql"
};
static const unsigned char Migration020Unread[] = {
#embed "../Schema/SQL/Migration020Unread.sql"
};
static const unsigned char Migration021Receipts[] = {
#embed "../Schema/SQL/Migration021Receipts.sql"
};
static const unsigned char Migration022Timed[] = {
#embed "../Schema/SQL/Migration022Timed.sql"
};
static const unsigned char Migration023Pushes[] = {
#embed "../Schema/SQL/Migration023Pushes.sql"
};
static const unsigned char Migration024Moves[] = {
#embed "../Schema/SQL/Migration024Moves.sql"
};
static const unsigned char Migration025Notify[] = {
#embed "../Schema/SQL/Migration025Notify.sql"
};
static const unsigned char Migration026Reading[] = {
#embed "../Schema/SQL/Migration026Reading.sql"
};
static const unsigned char Migration027Persistence[] = {
#embed "../Schema/SQL/Migration027Persistence.sql"
};
static const unsigned char Migration028Texts[] = {
#embed "../Schema/SQL/Migration028Texts.sql"
};
static const unsigned char Migration029Deletions[] = {
#embed "../Schema/SQL/Migration029Deletions.sql"
};
static const unsigned char Migration030PushKinds[] = {
#embed "../Schema/SQL/Migration030PushKinds.sql"
};
static const unsigned char Schema[] = {
#embed "../Schema/SQL/Schema.sql"
};
static const unsigned char Activities[] = {
#embed "../Stores/SQL/Activities.sql"
};
static const unsigned char AlertTrace[] = {
#embed "../Stores/SQL/AlertTrace.sql"
};
static const unsigned char Alerts[] = {
#embed "../Stores/SQL/Alerts.sql"
};
static const unsigned char AppTokens[] = {
#embed "../Stores/SQL/AppTokens.sql"
};
static const unsigned char Audience[] = {
#embed "../Stores/SQL/Audience.sql"
};
static const unsigned char Badges[] = {
#embed "../Stores/SQL/Badges.sql"
};
static const unsigned char Devices[] = {
#embed "../Stores/SQL/Devices.sql"
};
static const unsigned char Messages[] = {
#embed "../Stores/SQL/Messages.sql"
};
static const unsigned char Hubs[] = {
#embed "../Stores/SQL/Hubs.sql"
};
static const unsigned char Presence[] = {
#embed "../Stores/SQL/Presence.sql"
};
static const unsigned char Receipts[] = {
#embed "../Stores/SQL/Receipts.sql"
};
static const unsigned char SampleChat[] = {
#embed "../Stores/SQL/SampleChat.sql"
};
static const unsigned char Streams[] = {
#embed "../Stores/SQL/Streams.sql"
};
static const unsigned char TimedRows[] = {
#embed "../Stores/SQL/TimedRows.sql"
};
static const unsigned char Users[] = {
#embed "../Stores/SQL/Users.sql"
};

static const struct roost_sql_file files[] = {
    {"CaptureDoctor.sql", CaptureDoctor, sizeof CaptureDoctor},
    {"ClientRoles.sql", ClientRoles, sizeof ClientRoles},
    {"Doctor.sql", Doctor, sizeof Doctor},
    {"Locks.sql", Locks, sizeof Locks},
    {"Publishing.sql", Publishing, sizeof Publishing},
    {"Watching.sql", Watching, sizeof Watching},
    {"Capture.sql", Capture, sizeof Capture},
    {"Authority.sql", Authority, sizeof Authority},
    {"Catalog.sql", Catalog, sizeof Catalog},
    {"Epochs.sql", Epochs, sizeof Epochs},
    {"Feed.sql", Feed, sizeof Feed},
    {"Losses.sql", Losses, sizeof Losses},
    {"Members.sql", Members, sizeof Members},
    {"Policies.sql", Policies, sizeof Policies},
    {"Recovery.sql", Recovery, sizeof Recovery},
    {"Rows.sql", Rows, sizeof Rows},
    {"SessionList.sql", SessionList, sizeof SessionList},
    {"Window.sql", Window, sizeof Window},
    {"Sessions.sql", Sessions, sizeof Sessions},
    {"InstallClaims.sql", InstallClaims, sizeof InstallClaims},
    {"InstallMessageTrigger.sql", InstallMessageTrigger, sizeof InstallMessageTrigger},
    {"InstallRealtime.sql", InstallRealtime, sizeof InstallRealtime},
    {"Migration001Outbox.sql", Migration001Outbox, sizeof Migration001Outbox},
    {"Migration002Triggers.sql", Migration002Triggers, sizeof Migration002Triggers},
    {"Migration003Messages.sql", Migration003Messages, sizeof Migration003Messages},
    {"Migration004Scopes.sql", Migration004Scopes, sizeof Migration004Scopes},
    {"Migration005Recovery.sql", Migration005Recovery, sizeof Migration005Recovery},
    {"Migration006Ring.sql", Migration006Ring, sizeof Migration006Ring},
    {"Migration007Presence.sql", Migration007Presence, sizeof Migration007Presence},
    {"Migration008Push.sql", Migration008Push, sizeof Migration008Push},
    {"Migration009Sessions.sql", Migration009Sessions, sizeof Migration009Sessions},
    {"Migration010Epochs.sql", Migration010Epochs, sizeof Migration010Epochs},
    {"Migration011Rows.sql", Migration011Rows, sizeof Migration011Rows},
    {"Migration012Losses.sql", Migration012Losses, sizeof Migration012Losses},
    {"Migration013Order.sql", Migration013Order, sizeof Migration013Order},
    {"Migration014Capture.sql", Migration014Capture, sizeof Migration014Capture},
    {"Migration015Scopes.sql", Migration015Scopes, sizeof Migration015Scopes},
    {"Migration016Watched.sql", Migration016Watched, sizeof Migration016Watched},
    {"Migration017Streams.sql", Migration017Streams, sizeof Migration017Streams},
    {"Migration018Cluster.sql", Migration018Cluster, sizeof Migration018Cluster},
    {"Migration019Places.sql", Migration019Places, sizeof Migration019Places},
    {"Migration020Unread.sql", Migration020Unread, sizeof Migration020Unread},
    {"Migration021Receipts.sql", Migration021Receipts, sizeof Migration021Receipts},
    {"Migration022Timed.sql", Migration022Timed, sizeof Migration022Timed},
    {"Migration023Pushes.sql", Migration023Pushes, sizeof Migration023Pushes},
    {"Migration024Moves.sql", Migration024Moves, sizeof Migration024Moves},
    {"Migration025Notify.sql", Migration025Notify, sizeof Migration025Notify},
    {"Migration026Reading.sql", Migration026Reading, sizeof Migration026Reading},
    {"Migration027Persistence.sql", Migration027Persistence, sizeof Migration027Persistence},
    {"Migration028Texts.sql", Migration028Texts, sizeof Migration028Texts},
    {"Migration029Deletions.sql", Migration029Deletions, sizeof Migration029Deletions},
    {"Migration030PushKinds.sql", Migration030PushKinds, sizeof Migration030PushKinds},
    {"Schema.sql", Schema, sizeof Schema},
    {"Activities.sql", Activities, sizeof Activities},
    {"AlertTrace.sql", AlertTrace, sizeof AlertTrace},
    {"Alerts.sql", Alerts, sizeof Alerts},
    {"AppTokens.sql", AppTokens, sizeof AppTokens},
    {"Audience.sql", Audience, sizeof Audience},
    {"Badges.sql", Badges, sizeof Badges},
    {"Devices.sql", Devices, sizeof Devices},
    {"Messages.sql", Messages, sizeof Messages},
    {"Hubs.sql", Hubs, sizeof Hubs},
    {"Presence.sql", Presence, sizeof Presence},
    {"Receipts.sql", Receipts, sizeof Receipts},
    {"SampleChat.sql", SampleChat, sizeof SampleChat},
    {"Streams.sql", Streams, sizeof Streams},
    {"TimedRows.sql", TimedRows, sizeof TimedRows},
    {"Users.sql", Users, sizeof Users},
};

const struct roost_sql_file *roost_sql_files(size_t *count) {
    *count = sizeof files / sizeof *files;
    return files;
}
