/// Time as the state machines see it: since some start, on a clock that goes on while the device sleeps.
package typealias Moment = Duration
