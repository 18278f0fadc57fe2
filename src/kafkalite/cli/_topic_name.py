"""Names of topics as they are typed, and completed from what the cluster has."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import click

from kafkalite.cli._as_program import Text
from kafkalite.cli._where import where_of

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

PATIENCE_S = 2.0  # of somebody who types


class TopicName(Text):
    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        from kafkalite.client.cluster import ClientFailed

        try:
            names = _names(ctx)
        except (ClientFailed, click.ClickException):
            return []
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _names(ctx: click.Context) -> list[str]:
    from kafkalite.protocol.errors import Error
    from kafkalite.protocol.messages import MetadataRequest

    typed = (ctx.params.get(name) for name in ("bootstrap", "client_file", "profile"))
    with closing(where_of(*typed).connect(PATIENCE_S)) as cluster:
        answer = cluster.ask_any(MetadataRequest(topics=None, allow_auto_topic_creation=False))
    return sorted(each.name for each in answer.topics if each.error_code == Error.NONE)
