"""What bedplate is installed from: a wheel, packages of Debian and Fedora, an image for containers, a bill of materials.

Each is made of the files that git knows, with the time of the last commit, so that two builds are equal byte for byte.
"""
