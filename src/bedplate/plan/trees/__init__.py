"""Source trees and patches in a plan: `source = { tree = "~/src/x", commit = "master~1" }`, `patches = ["v3-0001-y.patch"]`."""
