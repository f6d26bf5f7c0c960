/// A connection's place in its loop's tables: small, dense, used again after the connection is gone.
package typealias Slot = Int32
