// A fan-out server on Node's `ws`: every message goes to every socket. node_server.js PORT
"use strict";
const { WebSocketServer } = require("ws");

const server = new WebSocketServer({
  host: "127.0.0.1", port: Number(process.argv[2]), backlog: 4096, perMessageDeflate: false,
});
server.on("connection", (socket) => {
  socket.on("error", () => socket.terminate());
  socket.on("message", (message, isBinary) => {
    for (const client of server.clients) client.send(message, { binary: isBinary });
  });
});
