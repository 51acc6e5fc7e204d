"""Which URLs can be copied to."""

import pytest

from pliant.objects.location import problem_of


@pytest.mark.parametrize(
    "url", ["s3://bucket", "s3://my.bucket-1/pliant/lab 3", "gs://bucket/a/b", "file:///mnt/results", "s3://bucket/a/"]
)
def test_urls_of_stores(url: str) -> None:
    assert problem_of(url) == ""


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("", "is no URL of an object store"),
        ("/mnt/results", "is no URL of an object store"),
        ("https://bucket.example.org", "is no URL of an object store"),
        ("S3://bucket", "is no URL of an object store"),
        ("s3://", "is no name of a bucket"),
        ("s3://B/a", "is no name of a bucket"),
        ("s3://key:secret@bucket/a", "credentials and options are no part of the URL"),
        ("s3://bucket/a?versionId=1", "credentials and options are no part of the URL"),
        ("file://results", "names no folder"),
        ("file:///", "names no folder"),
        ("s3://bucket/../other", "cannot be used"),
        ("s3://bucket/a//b", "cannot be used"),
        ("s3://bucket/a*", "cannot be used"),
        ("s3://bucket/" + "a/" * 200, "cannot be used"),
    ],
)
def test_what_is_none_is_said(url: str, why: str) -> None:
    assert why in problem_of(url)
