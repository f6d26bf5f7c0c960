import { Cluster } from "./cluster.js";
import { el } from "./element.js";
import * as format from "./format.js";
import { HINTS } from "./hints.js";
import { Plot } from "./plot.js";
import { Facts, Table } from "./table.js";

/** If there are more loops than colours, their mean and the busiest one suffice. */
const MOST_LOOPS = 6;

/** The hub at a glance: the last five minutes, and its current state. */
export class Overview {
  title = "Overview";
  #store;
  #plots;
  #loops = null;
  #loopPlot = el("div", { class: "slot" });
  #loopTable = new Table([
    { title: "Loop", cell: (loop) => String(loop.index) },
    { title: "Connections", class: "number", cell: (loop) => format.exact(loop.connections) },
    { title: "Busy", class: "number", cell: (loop) => format.percent(loop.busy) },
    { title: "Turn p99", class: "number", cell: (loop) => format.milliseconds(loop.turn) },
  ], { key: (loop) => loop.index, empty: "No figures yet.", caption: "Event loops" });
  #cluster = new Cluster();
  #feed = new Facts("Postgres and row changes", { "data-testid": "feed" }, HINTS);
  #hub = new Facts("Channels", {}, HINTS);
  #slow = new Facts("Slow readers", {}, HINTS);
  #streams = new Facts("Streams", { "data-testid": "streams" }, HINTS);
  #push = new Facts("Pushes", {}, HINTS);
  #process = new Facts("Process", {}, HINTS);

  /** @param {import("./store.js").Store} store */
  constructor(store) {
    this.#store = store;
    this.#plots = [
      new Plot("Connections", [{ name: "open", pick: (s) => s.connections }],
        { format: format.count, least: 4, testid: "connections" }),
      new Plot("Messages", [
        { name: "sent", pick: (s) => s.framesOut },
        { name: "received", pick: (s) => s.framesIn },
      ], { format: format.rate, least: 4, testid: "messages" }),
      new Plot("Rows: commit to socket", [
        { name: "p50", pick: (s) => s.lagMedian },
        { name: "p99", pick: (s) => s.lagP99 },
      ], { format: format.milliseconds, least: 2, testid: "lag" }),
      new Plot("Traffic", [
        { name: "sent", pick: (s) => s.bytesOut },
        { name: "received", pick: (s) => s.bytesIn },
      ], { format: format.byteRate, least: 1024, base: 1024, testid: "traffic" }),
      new Plot("Coming and going", [
        { name: "opened", pick: (s) => s.accepted },
        { name: "closed", pick: (s) => s.closed },
        { name: "joins", pick: (s) => s.joins },
      ], { format: format.rate, least: 4, testid: "turnover" }),
      new Plot("Waiting for readers", [{ name: "queued", pick: (s) => s.pending }],
        { format: format.bytes, least: 1024, base: 1024, testid: "pending" }),
      new Plot("CPU of the process", [{ name: "cores", pick: (s) => s.cores }],
        { format: (value) => format.count(value), least: 0.1, testid: "cores" }),
    ];
    const loops = el("section", { class: "card" }, el("h2", {}, "Event loops"), this.#loopTable.element);
    this.element = el("div", { class: "view" },
      el("div", { class: "plots" }, ...this.#plots.map((plot) => plot.element), this.#loopPlot),
      this.#cluster.element,
      el("div", { class: "columns" }, this.#feed.element, this.#hub.element, this.#slow.element, loops,
        this.#streams.element, this.#push.element, this.#process.element));
    this.#streams.element.hidden = true;
    this.#push.element.hidden = true;
    this.refresh();
  }

  /** Called once a second, and when past samples have arrived. */
  refresh() {
    const { samples, figures, problem, cluster } = this.#store;
    const newest = samples.at(-1);
    if (!newest) return;
    this.#showLoops(newest.loops);
    for (const plot of this.#plots) plot.show(samples);
    this.#loops?.show(samples);
    this.#loopTable.show(newest.loops.map((loop, index) => ({ ...loop, index })));
    this.#cluster.show(cluster);
    if (figures) this.#showFigures(figures, problem, newest);
  }

  #showLoops(loops) {
    if (this.#loops || loops.length === 0) return;
    const each = loops.map((_, index) => ({ name: `loop ${index}`, pick: (s) => s.loops[index]?.busy ?? null }));
    const all = (s) => s.loops.map((loop) => loop.busy);
    const series = loops.length <= MOST_LOOPS ? each : [
      { name: "busiest", pick: (s) => Math.max(...all(s)) },
      { name: "mean", pick: (s) => all(s).reduce((sum, busy) => sum + busy, 0) / all(s).length },
    ];
    this.#loops = new Plot("Event loops at work", series, { format: format.percent, least: 0.1, testid: "busy" });
    this.#loopPlot.replaceWith(this.#loops.element);
  }

  #showFigures(figures, problem, newest) {
    const exact = (name) => format.exact(figures[name]);
    const known = (name, label, show = format.exact) => (name in figures ? [[label, show(figures[name])]] : []);
    const up = figures.roost_feed_up === 1;
    this.#feed.show([
      ["State", up ? "changes flow" : (problem ?? "not connected"), up ? "good" : "bad"],
      ["Changes read", exact("roost_feed_changes_total")],
      ["Reads of the outbox", exact("roost_feed_polls_total")],
      ["Woken by a commit", exact("roost_feed_rings_total")],
      ["Found by the safety poll", exact("roost_feed_missed_rings_total"), figures.roost_feed_missed_rings_total ? "bad" : ""],
      ["Connections made to Postgres", exact("roost_feed_connections_total")],
      ...known("roost_outbox_rows", "Rows in the outbox, about"),
      ...known("roost_outbox_bytes", "Size of the outbox", format.bytes),
      ...known("roost_outbox_age_seconds", "Oldest row", format.duration),
      ["Rows that policies decided", exact("roost_visibility_asked_total")],
      ["Round trips for policies", exact("roost_visibility_round_trips_total")],
    ]);
    this.#hub.show([
      ["Channels", channelCount(figures.roost_channels, newest.loops.length)],
      ["Sockets in them", exact("roost_memberships")],
      ["Subscriptions to rows", exact("roost_subscriptions")],
      ["Present", exact("roost_presence_members")],
      ["Reconnected in time", exact("roost_presence_leaves_avoided_total")],
      ["Joins", exact('roost_joins_total{result="ok"}')],
      ["Joins refused", exact('roost_joins_total{result="refused"}')],
      ...reasons(figures, "roost_joins_refused_total", JOIN_REASONS),
      ["Messages refused", format.exact(sum(figures, "roost_messages_refused_total"))],
      ...reasons(figures, "roost_messages_refused_total", JOIN_REASONS),
      ["Caught up after a cut", exact('roost_recoveries_total{result="resumed"}')],
      ["Messages kept for history", exact("roost_history_messages")],
    ]);
    this.#slow.show([
      ["Waiting for sockets", format.bytes(newest.pending)],
      ["Presence updates skipped", exact("roost_slow_reader_coalesced_total")],
      ["Readers left behind", exact("roost_slow_reader_written_off_total")],
      ["Closed: queue full", exact("roost_slow_reader_closed_total"), figures.roost_slow_reader_closed_total ? "bad" : ""],
      ["Cut off", exact("roost_slow_reader_cut_total")],
      ["Changes held back", format.duration(figures.roost_changes_held_seconds_total)],
      ["Stalled turns", exact("roost_loop_stalls_total")],
    ]);
    this.#process.show([
      ["Running for", format.duration(newest.at - figures.process_start_time_seconds)],
      ["Memory", format.bytes(figures.process_resident_memory_bytes)],
      ["Open files", `${exact("process_open_fds")} of ${exact("process_max_fds")}`],
      ["CPU used", format.duration(figures.process_cpu_seconds_total)],
      ["Upgrades accepted", exact("roost_connections_accepted_total")],
      ["Upgrades refused", format.exact(sum(figures, "roost_connections_refused_total"))],
      ...reasons(figures, "roost_connections_refused_total", UPGRADE_REASONS),
      ["Malformed messages", exact("roost_malformed_frames_total")],
    ]);
    this.#showStreams(figures);
    this.#push.element.hidden = !("roost_push_queue" in figures);
    if (this.#push.element.hidden) return;
    this.#push.show([
      ["In the queue", exact("roost_push_queue")],
      ["Not answered yet", exact("roost_push_in_flight")],
      ["Delivered", exact('roost_pushes_total{result="delivered"}')],
      ["Sent again", exact("roost_push_retries_total")],
      ["Servers that refuse the key", exact("roost_push_circuit_open"), figures.roost_push_circuit_open ? "bad" : ""],
      ["Age of the provider token", format.duration(figures.roost_push_provider_token_age_seconds)],
      ["Messages without their alert", exact("roost_push_messages_lost_total"), figures.roost_push_messages_lost_total ? "bad" : ""],
      ["Live Activities", exact("roost_push_activities")],
    ]);
  }

  #showStreams(figures) {
    this.#streams.element.hidden = !("roost_streams" in figures);
    if (this.#streams.element.hidden) return;
    const exact = (name) => format.exact(figures[name]);
    const failures = figures.roost_stream_write_failures_total;
    const unwritten = sum(figures, "roost_stream_commits_total") - (figures['roost_stream_commits_total{result="committed"}'] ?? 0);
    this.#streams.show([
      ["Kept", exact("roost_streams")],
      ["Open", exact("roost_streams_open")],
      ["Of them stalled", exact("roost_streams_stalled"), figures.roost_streams_stalled ? "bad" : ""],
      ["Bytes", format.bytes(figures.roost_stream_bytes)],
      ["Watchers", format.exact(sum(figures, "roost_stream_watchers"))],
      ["Appends", exact("roost_stream_appends_total")],
      ["Requests refused", format.exact(sum(figures, "roost_stream_refused_total"))],
      ["Cancelled", exact('roost_streams_ended_total{reason="cancelled"}')],
      ["Ended: producer gone", exact('roost_streams_ended_total{reason="aborted"}')],
      ["Removed early to make room", exact("roost_streams_evicted_total")],
      ["Writes that failed", format.exact(failures), failures ? "bad" : ""],
      ...('roost_stream_commits_total{result="committed"}' in figures ? [["Closes without their row", format.exact(unwritten), unwritten ? "bad" : ""]] : []),
    ]);
  }
}

/** Each loop counts only its own channels, so the hub's figure counts a channel on two loops twice. */
function channelCount(count, loops) {
  return loops > 1 ? `${format.exact(count)} on ${loops} loops` : format.exact(count);
}

/** The reasons why sockets were refused, by the metric's label. */
const UPGRADE_REASONS = {
  token: "bad or expired token", key_missing: "no token", limit: "a limit", origin: "origin of the page", path: "another path",
  handshake: "incomplete handshake", version: "unknown vsn", draining: "restarting",
};

/** The reasons why joins were refused, or were not followed by rows. */
const JOIN_REASONS = {
  token: "bad or expired token", unauthorized: "denied by a policy or a backend", limit: "a limit", request: "not understood",
  database: "database unreachable", row_changes: "row changes: table, role, filter", stream: "a stream", restarting: "restarting",
};

/** A line for each reason that occurred. The log has the details. */
function reasons(figures, name, words) {
  return Object.entries(words)
    .map(([reason, text]) => [`\u2003${text}`, figures[`${name}{reason="${reason}"}`]])
    .filter(([, count]) => count > 0)
    .map(([text, count]) => [text, format.exact(count), "bad"]);
}

/** Sums up a figure over its labels. */
function sum(figures, name) {
  return Object.entries(figures).reduce((all, [key, value]) => (key.startsWith(`${name}{`) ? all + value : all), 0);
}
