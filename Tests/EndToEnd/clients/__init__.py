"""Emulators of the clients that are in use, frame by frame from facts; test_client_stories.py has what they go through."""

from clients.csharp import CSharp
from clients.dart import Dart
from clients.dart_three import DartThree
from clients.elixir import Elixir
from clients.go import Go
from clients.javascript import JavaScript
from clients.javascript_one import JavaScriptOne
from clients.kotlin import Kotlin
from clients.python import Python
from clients.python_one import PythonOne
from clients.rust import Rust
from clients.swift import Swift
from clients.swift_three import SwiftThree

ALL = (JavaScript, JavaScriptOne, Swift, SwiftThree, Kotlin, Dart, DartThree, CSharp, Python, PythonOne, Elixir, Go, Rust)
