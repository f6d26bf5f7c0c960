/// What the client's logic wants done: the connection's wishes, and those of channels with their number.
package enum ClientAction {
    case connection(ConnectionAction)
    case channel(ChannelID, ChannelAction)
    case send(ClientMessage)
}

package typealias ChannelID = Int
