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
static const unsigned char SchemaCapture[] = {
#embed "../Schema/SQL/SchemaCapture.sql"
};
static const unsigned char SchemaMessages[] = {
#embed "../Schema/SQL/SchemaMessages.sql"
};
static const unsigned char SchemaNotify[] = {
#embed "../Schema/SQL/SchemaNotify.sql"
};
static const unsigned char SchemaOrder[] = {
#embed "../Schema/SQL/SchemaOrder.sql"
};
static const unsigned char SchemaOutbox[] = {
#embed "../Schema/SQL/SchemaOutbox.sql"
};
static const unsigned char SchemaPresence[] = {
#embed "../Schema/SQL/SchemaPresence.sql"
};
static const unsigned char SchemaPush[] = {
#embed "../Schema/SQL/SchemaPush.sql"
};
static const unsigned char SchemaRecovery[] = {
#embed "../Schema/SQL/SchemaRecovery.sql"
};
static const unsigned char SchemaRows[] = {
#embed "../Schema/SQL/SchemaRows.sql"
};
static const unsigned char SchemaSessions[] = {
#embed "../Schema/SQL/SchemaSessions.sql"
};
static const unsigned char SchemaStreams[] = {
#embed "../Schema/SQL/SchemaStreams.sql"
};
static const unsigned char SchemaTriggers[] = {
#embed "../Schema/SQL/SchemaTriggers.sql"
};
static const unsigned char SchemaVisibility[] = {
#embed "../Schema/SQL/SchemaVisibility.sql"
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
    {"SchemaCapture.sql", SchemaCapture, sizeof SchemaCapture},
    {"SchemaMessages.sql", SchemaMessages, sizeof SchemaMessages},
    {"SchemaNotify.sql", SchemaNotify, sizeof SchemaNotify},
    {"SchemaOrder.sql", SchemaOrder, sizeof SchemaOrder},
    {"SchemaOutbox.sql", SchemaOutbox, sizeof SchemaOutbox},
    {"SchemaPresence.sql", SchemaPresence, sizeof SchemaPresence},
    {"SchemaPush.sql", SchemaPush, sizeof SchemaPush},
    {"SchemaRecovery.sql", SchemaRecovery, sizeof SchemaRecovery},
    {"SchemaRows.sql", SchemaRows, sizeof SchemaRows},
    {"SchemaSessions.sql", SchemaSessions, sizeof SchemaSessions},
    {"SchemaStreams.sql", SchemaStreams, sizeof SchemaStreams},
    {"SchemaTriggers.sql", SchemaTriggers, sizeof SchemaTriggers},
    {"SchemaVisibility.sql", SchemaVisibility, sizeof SchemaVisibility},
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
