/// A Lua script that runs in Redis as one step. `RedisLink` loads it on each connection and calls it by its hash.
package struct RedisScript: Sendable, Hashable {
    package let text: String

    package init(_ text: String) { self.text = text }
}

/// A script call in flight, with everything needed to repeat it with the whole text if Redis has forgotten the script.
struct ScriptCall {
    let script: RedisScript
    let keys: [String]
    let arguments: [RedisArgument]

    private var operands: [RedisArgument] {
        [.integer(Int64(keys.count))] + keys.map { .text($0) } + arguments
    }

    func byHash(_ hash: String) -> [RedisArgument] { ["EVALSHA", .text(hash)] + operands }

    var byText: [RedisArgument] { ["EVAL", .text(script.text)] + operands }
}
