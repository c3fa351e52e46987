# SPDX-License-Identifier: Apache-2.0
"""The git helper."""
from harness import box


def test_git():
    """the git helper"""
    sandbox = box()
    sandbox.git.init("repo", initial_branch="main")
    sandbox.git.configure_user("A B", "a@b.test", scope="local", path="repo")
    sandbox.files.write("repo/file", "one\n")
    assert sandbox.git.status("repo").has_untracked
    sandbox.git.add("repo")
    sandbox.git.commit("repo", "first")
    assert sandbox.git.status("repo").is_clean
    assert sandbox.git.branches("repo").current_branch == "main"
