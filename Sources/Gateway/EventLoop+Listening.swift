import CWebSockets

/// Where a loop's connections come from.
extension EventLoop {
    /// Starts to accept. Before `run`, on the thread that made the loop.
    func listen() throws(GatewayError) {
        listeners.append(try Listener(host: configuration.host, port: configuration.port, .clients, loop: self))
        guard index == 0 else { return }
        if let path = configuration.socket {
            listeners.append(try Listener(path: path, mode: configuration.socketMode, loop: self))
        }
        if let port = configuration.opsPort {
            listeners.append(try Listener(host: configuration.opsHost, port: port, .operators, loop: self))
            startOpsTimer()
        }
    }

    /// Takes a connection to the port of the WebSockets: where the hub ends TLS, it is lws' from the beginning.
    func take(_ connection: Int32) {
        if let encrypted {
            lws_adopt_socket_vhost(encrypted, connection)
        } else {
            takePlain(connection)
        }
    }

    /// Takes one that is never encrypted.
    func takePlain(_ connection: Int32, isOps: Bool = false) {
        http.accept(connection, isOps: isOps)
    }
}
