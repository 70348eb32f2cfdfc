"""Baseline of the store-read bench: awscrt (PyPI), one GetObject a range, as many at once as connections.

    awscrt_read.py WORKLOAD         with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY
"""

import os
import sys
import threading

from awscrt.auth import AwsCredentialsProvider
from awscrt.http import HttpHeaders, HttpRequest
from awscrt.io import ClientBootstrap, ClientTlsContext, DefaultHostResolver, EventLoopGroup, TlsConnectionOptions, TlsContextOptions
from awscrt.s3 import S3Client, S3RequestTlsMode, S3RequestType, create_default_s3_signing_config

from read_workload import Meter, Workload


class Reader:
    def __init__(self, work):
        self.work = work
        group = EventLoopGroup(1)
        bootstrap = ClientBootstrap(group, DefaultHostResolver(group))
        credentials = AwsCredentialsProvider.new_static(os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"])
        tls = None
        if work.tls:
            options = TlsContextOptions()
            options.override_default_trust_store_from_path(None, work.ca)
            tls = TlsConnectionOptions(ClientTlsContext(options))
            tls.set_server_name(work.host)
        self.client = S3Client(
            bootstrap=bootstrap,
            region=work.region,
            signing_config=create_default_s3_signing_config(region=work.region, credential_provider=credentials),
            tls_mode=S3RequestTlsMode.ENABLED if work.tls else S3RequestTlsMode.DISABLED,
            tls_connection_options=tls,
            throughput_target_gbps=100,
        )
        self.failed = []

    def read(self, ranges):
        lock, done, todo = threading.Lock(), threading.Event(), iter(ranges)
        running = 0

        def begin():
            nonlocal running
            with lock:
                item = next(todo, None)
                if item is None:
                    if running == 0:
                        done.set()
                    return
                running += 1
            index, offset = item
            headers = HttpHeaders([("host", f"{self.work.host}:{self.work.port}"), ("range", f"bytes={offset}-{offset + self.work.length - 1}")])
            got = 0

            def on_body(chunk, offset, **kwargs):
                nonlocal got
                got += len(chunk)

            def on_done(error, **kwargs):
                nonlocal running
                if error or got != self.work.length:
                    self.failed.append(error or f"{got} bytes")
                with lock:
                    running -= 1
                begin()

            self.client.make_request(
                type=S3RequestType.DEFAULT,
                operation_name="GetObject",
                request=HttpRequest("GET", self.work.objects[index][1], headers),
                on_body=on_body,
                on_done=on_done,
            )

        for _ in range(self.work.connections):
            begin()
        if not done.wait(300) or self.failed:
            raise SystemExit(f"awscrt_read: {self.failed[:1] or 'not done'}")


def main():
    work = Workload(sys.argv[1])
    reader = Reader(work)
    reader.read(work.warm)
    meter = Meter()
    reader.read(work.measured)
    meter.print_result(work)


main()
