"""Baseline of the store-read bench: obstore (PyPI), its asynchronous calls, as many at once as connections.

    obstore_read.py WORKLOAD        with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY
"""

import asyncio
import sys

import obstore
from obstore.store import S3Store

from read_workload import Meter, Workload


async def read(store, work, ranges):
    todo = iter(ranges)

    async def run():
        for index, offset in todo:
            data = await obstore.get_range_async(store, work.prefix + work.objects[index][0], start=offset, length=work.length)
            if len(data) != work.length:
                raise SystemExit(f"obstore_read: {len(data)} bytes")

    await asyncio.gather(*(run() for _ in range(work.connections)))


async def main():
    work = Workload(sys.argv[1])
    scheme = "https" if work.tls else "http"
    # It has no option for a private authority: with https it does not check the certificate.
    store = S3Store(
        work.bucket,
        endpoint=f"{scheme}://{work.host}:{work.port}",
        region=work.region,
        virtual_hosted_style_request=False,
        client_options={"allow_http": True, "allow_invalid_certificates": work.tls, "pool_max_idle_per_host": str(work.connections)},
    )
    await read(store, work, work.warm)
    meter = Meter()
    await read(store, work, work.measured)
    meter.print_result(work)


asyncio.run(main())
