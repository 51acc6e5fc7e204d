"""Files and folders: archives checked before they are unpacked, folders published whole, room on the disk, checksums.

Standard library only. It knows no noun and no network.
"""
