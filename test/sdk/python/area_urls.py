# SPDX-License-Identifier: Apache-2.0
"""URLs that other programs use."""
import httpx

from harness import box


def test_urls():
    """download_url() and upload_url(), signed"""
    sandbox = box()
    sandbox.files.write("down", "content")
    assert httpx.get(sandbox.download_url("down")).text == "content"
    assert httpx.get(sandbox.download_url("down", use_signature_expiration=60)).text == "content"
    done = httpx.post(sandbox.upload_url("up"), files={"file": b"up"})
    assert done.status_code == 200, done.text
    assert sandbox.files.read("up") == "up"
    assert httpx.get(sandbox.download_url("down").replace("path=down", "path=up")).status_code == 401
