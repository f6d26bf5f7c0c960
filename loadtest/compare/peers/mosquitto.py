"""mosquitto with MQTT over WebSockets."""

from peers.peer import Peer, Traffic

TOPIC = b"\x00\x05bench"


class Mosquitto(Peer):
    name = "mosquitto"
    title = "mosquitto"
    program = package = "mosquitto"

    def missing(self):
        if not self.tools.is_alone:
            return "its WebSockets cannot be kept to the loopback interface, and there is no network namespace"
        return super().missing()

    def open(self):
        # Started by root it becomes a user of its own, who makes a socket there.
        self.folder.chmod(0o777)

    def command(self, port, window):
        return ["mosquitto", "-c", self.configuration("mosquitto.conf", port=port)]

    def traffic(self, size):
        # MQTT 3.1.1, a clean session without a keep-alive, QoS 0.
        connect = packet(0x10, b"\x00\x04MQTT\x04\x02\x00\x00\x00\x00")
        subscribe = packet(0x82, b"\x00\x01" + TOPIC + b"\x00")
        message = packet(0x30, TOPIC + bytes(size))
        return Traffic(subprotocol="mqtt", subscribe=(connect, subscribe), answers=2, publisher=(connect,),
                       publisher_answers=1, prefix=message[:-size], is_binary=True)


def packet(kind, body):
    """An MQTT control packet: its length has seven bits a byte."""
    length, left = bytearray(), len(body)
    while True:
        left, digit = left >> 7, left & 127
        length.append(digit | (0x80 if left else 0))
        if not left:
            return bytes([kind]) + bytes(length) + body
